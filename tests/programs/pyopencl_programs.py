#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Small pyopencl programs: each checks its result against numpy and prints a hash of every bit of it.

    pyopencl_programs.py arrays|reduction|scan|radixsort|svm|images|events|paced
"""

import hashlib
import sys

import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array
from pyopencl.algorithm import RadixSort
from pyopencl.reduction import ReductionKernel
from pyopencl.scan import GenericScanKernel

mf = cl.mem_flags


def show(name, array):
    array = np.ascontiguousarray(array)
    print(name, array.dtype, array.shape, hashlib.sha256(array.tobytes()).hexdigest(), flush=True)


def same(name, got, wanted, exact=True):
    ok = np.array_equal(got, wanted) if exact else np.allclose(got, wanted, rtol=1e-5, atol=1e-5)
    show(name, got)
    if not ok:
        print("WRONG", name, flush=True)
        sys.exit(1)


def arrays(ctx, queue, rng):
    a = rng.random(10007, dtype=np.float32)
    b = rng.random(10007, dtype=np.float32) + np.float32(0.5)
    x, y = cl_array.to_device(queue, a), cl_array.to_device(queue, b)
    same("sum", (x + y).get(), a + b)
    same("product", (x * y).get(), a * b)
    same("quotient", (x / y).get(), a / b, exact=False)
    same("axpby", (3 * x - y * 2).get(), 3 * a - b * 2, exact=False)
    same("slice", x[17:4001].get(), a[17:4001])
    same("reversed", x.reverse().get(), a[::-1])
    same("complex", (cl_array.to_device(queue, a.astype(np.complex64)) * np.complex64(1j)).get(), a.astype(np.complex64) * np.complex64(1j))
    same("take", cl_array.take(x, cl_array.to_device(queue, np.arange(0, 10007, 3, dtype=np.int32))).get(), a[::3])
    same("where", cl_array.if_positive(x - y, x, y).get(), np.where(a - b > 0, a, b))
    same("arange", cl_array.arange(queue, 5000, dtype=np.int64).get(), np.arange(5000, dtype=np.int64))
    m = cl_array.to_device(queue, a[:10000].reshape(100, 100))
    same("transposed", m.T.get(), a[:10000].reshape(100, 100).T)


def reduction(ctx, queue, rng):
    a = rng.integers(-1000, 1000, 100003, dtype=np.int32)
    x = cl_array.to_device(queue, a)
    same("sum", cl_array.sum(x, dtype=np.dtype(np.int64)).get(), np.int64(a.sum(dtype=np.int64)))
    same("max", cl_array.max(x).get(), a.max())
    same("min", cl_array.min(x).get(), a.min())
    f = rng.random(50021, dtype=np.float32)
    y = cl_array.to_device(queue, f)
    same("dot", cl_array.dot(y, y).get(), np.dot(f, f), exact=False)
    kernel = ReductionKernel(ctx, np.int32, neutral="0", reduce_expr="a+b", map_expr="x[i]*y[i]", arguments="__global int *x, __global int *y")
    b = rng.integers(-9, 9, 100003, dtype=np.int32)
    same("custom", kernel(x, cl_array.to_device(queue, b)).get(), np.int32((a * b).sum(dtype=np.int64)))


def scan(ctx, queue, rng):
    a = rng.integers(0, 10, 70001, dtype=np.int32)
    x = cl_array.to_device(queue, a)
    kernel = GenericScanKernel(ctx, np.int32, arguments="__global int *ary", input_expr="ary[i]", scan_expr="a+b", neutral="0",
                               output_statement="ary[i] = item;")
    kernel(x)
    same("inclusive", x.get(), np.cumsum(a, dtype=np.int32))
    y = cl_array.to_device(queue, a)
    kernel = GenericScanKernel(ctx, np.int32, arguments="__global int *ary", input_expr="ary[i]", scan_expr="a+b", neutral="0",
                               output_statement="ary[i] = prev_item;")
    kernel(y)
    same("exclusive", y.get(), np.cumsum(a, dtype=np.int32) - a)


def radixsort(ctx, queue, rng):
    a = rng.integers(0, 1 << 20, 30011, dtype=np.uint32)
    sort = RadixSort(ctx, "__global uint *ary", key_expr="ary[i]", sort_arg_names=["ary"], key_dtype=np.uint32)
    (sorted_array,), _ = sort(cl_array.to_device(queue, a), key_bits=20, queue=queue)
    same("sorted", sorted_array.get(), np.sort(a))


def svm(ctx, queue, rng):
    device = queue.device
    capabilities = device.svm_capabilities
    print("svm capabilities", int(capabilities))
    program = cl.Program(ctx, "__kernel void twice(__global float *a) { a[get_global_id(0)] *= 2; }").build()
    n = 4096
    wanted = rng.random(n, dtype=np.float32)
    memory = cl.SVM(cl.csvm_empty(ctx, n, np.float32))
    with memory.map_rw(queue) as mapped:
        mapped[:] = wanted
    program.twice(queue, (n,), None, memory)
    with memory.map_ro(queue) as mapped:
        same("coarse grain", mapped.copy(), wanted * 2)
    out = cl.SVM(cl.csvm_empty(ctx, n, np.float32))
    cl.enqueue_copy(queue, out, memory)
    queue.finish()
    with out.map_ro(queue) as mapped:
        same("copied", mapped.copy(), wanted * 2)


def images(ctx, queue, rng):
    source = """
    __constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
    __kernel void transpose(read_only image2d_t in, write_only image2d_t out)
    {
        int2 p = (int2)(get_global_id(0), get_global_id(1));
        write_imageui(out, p.yx, read_imageui(in, nearest, p));
    }"""
    program = cl.Program(ctx, source).build()
    pixels = rng.integers(0, 255, (48, 64, 4), dtype=np.uint8)
    fmt = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT8)
    image = cl.Image(ctx, mf.READ_ONLY | mf.COPY_HOST_PTR, fmt, shape=(64, 48), hostbuf=pixels)
    out = cl.Image(ctx, mf.WRITE_ONLY, fmt, shape=(48, 64))
    program.transpose(queue, (64, 48), None, image, out)
    back = np.empty((64, 48, 4), np.uint8)
    cl.enqueue_copy(queue, back, out, origin=(0, 0), region=(48, 64))
    same("transposed", back, pixels.transpose(1, 0, 2))
    mapped = cl.enqueue_map_image(queue, image, cl.map_flags.READ, (0, 4), (64, 8), (8, 64, 4), np.uint8)[0]
    same("mapped", mapped.copy(), pixels[4:12])
    mapped.base.release(queue)
    filled = cl.Image(ctx, mf.READ_WRITE, fmt, shape=(16, 16))
    cl.enqueue_fill_image(queue, filled, np.array([1, 2, 3, 4], np.uint32), (0, 0), (16, 16))
    small = np.empty((16, 16, 4), np.uint8)
    cl.enqueue_copy(queue, small, filled, origin=(0, 0), region=(16, 16))
    same("filled", small, np.tile(np.array([1, 2, 3, 4], np.uint8), (16, 16, 1)))


def events(ctx, queue, rng):
    seen = []
    program = cl.Program(ctx, "__kernel void add(__global int *a, int b) { a[get_global_id(0)] += b; }").build()
    out_of_order = cl.CommandQueue(ctx, properties=cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
                                   | cl.command_queue_properties.PROFILING_ENABLE)
    gate = cl.UserEvent(ctx)
    buffer = cl.Buffer(ctx, mf.READ_WRITE | mf.COPY_HOST_PTR, hostbuf=np.zeros(256, np.int32))
    last = gate
    for step in range(20):
        last = program.add(out_of_order, (256,), None, buffer, np.int32(step), wait_for=[last])
    last.set_callback(cl.command_execution_status.COMPLETE, seen.append)
    print("before the gate opens", last.command_execution_status == cl.command_execution_status.COMPLETE)
    gate.set_status(cl.command_execution_status.COMPLETE)
    last.wait()
    times = last.profile
    print("profile in order", times.queued <= times.submit <= times.start <= times.end)
    out = np.empty(256, np.int32)
    cl.enqueue_copy(out_of_order, out, buffer, wait_for=[last])
    out_of_order.finish()
    same("chain", out, np.full(256, sum(range(20)), np.int32))
    with_marker = cl.enqueue_marker(out_of_order, wait_for=[last])
    with_marker.wait()
    print("marker", with_marker.command_execution_status)


def paced(ctx, queue, rng):
    """Some work for every line of stdin; kernels, buffers and arrays live on from line to line."""
    state = rng.integers(0, 1 << 20, 200003, dtype=np.int32)
    x, image = cl_array.to_device(queue, state), rng.random((256, 256), dtype=np.float32)
    summed = GenericScanKernel(ctx, np.int32, arguments="__global int *ary", input_expr="ary[i]", scan_expr="a+b", neutral="0",
                               output_statement="ary[i] = item;")
    field = cl_array.to_device(queue, image)
    blur = cl.Program(ctx, """__kernel void blur(__global const float *a, __global float *b)
    {
        int x = get_global_id(0), y = get_global_id(1), w = get_global_size(0), h = get_global_size(1);
        b[y * w + x] = 0.5f * a[y * w + x] + 0.125f * (a[y * w + (x + 1) % w] + a[y * w + (x + w - 1) % w]
                     + a[(y + 1) % h * w + x] + a[(y + h - 1) % h * w + x]);
    }""").build().blur
    number = 0
    for _ in sys.stdin:
        for _ in range(20):
            number += 1
            summed(x)
            x &= 0xfffff
            state = np.cumsum(state, dtype=np.int32) & 0xfffff
            other = cl_array.empty_like(field)
            blur(queue, (256, 256), None, field.data, other.data)
            field = other
        same("scanned {}".format(number), x.get(), state)
        show("blurred {}".format(number), field.get())


def main():
    programs = {f.__name__: f for f in (arrays, reduction, scan, radixsort, svm, images, events, paced)}
    ctx = cl.Context(cl.get_platforms()[0].get_devices())
    print("device", ctx.devices[0].name)
    programs[sys.argv[1]](ctx, cl.CommandQueue(ctx), np.random.default_rng(1))


main()

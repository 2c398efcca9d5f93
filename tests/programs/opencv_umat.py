#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""OpenCV pipelines on UMat, which run on OpenCL where a kernel exists; prints the device and a hash of each result."""

import hashlib
import sys

import cv2
import numpy as np

cv2.setNumThreads(1)
cv2.ocl.setUseOpenCL(True)
if not cv2.ocl.haveOpenCL() or not cv2.ocl.useOpenCL():
    print("OpenCV does not use OpenCL")
    sys.exit(1)
print("device", cv2.ocl.Device_getDefault().name(), flush=True)

rng = np.random.default_rng(2)
gray = rng.integers(0, 256, (240, 320), dtype=np.uint8)
colour = rng.integers(0, 256, (240, 320, 3), dtype=np.uint8)
smooth = cv2.GaussianBlur(colour, (9, 9), 3)


def show(name, value):
    array = value.get() if isinstance(value, cv2.UMat) else np.asarray(value)
    print(name, array.dtype, array.shape, hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest(), flush=True)


g, c = cv2.UMat(gray), cv2.UMat(smooth)
show("add", cv2.add(g, g))
show("cvtColor", cv2.cvtColor(c, cv2.COLOR_BGR2GRAY))
show("resize", cv2.resize(c, (200, 150), interpolation=cv2.INTER_LINEAR))
show("blur", cv2.blur(c, (5, 5)))
show("gaussian", cv2.GaussianBlur(c, (5, 5), 1.5))
show("median", cv2.medianBlur(g, 3))
show("erode", cv2.erode(g, np.ones((3, 3), np.uint8)))
show("sobel", cv2.Sobel(g, cv2.CV_16S, 1, 0))
show("laplacian", cv2.Laplacian(g, cv2.CV_16S, ksize=3))
show("threshold", cv2.threshold(g, 100, 255, cv2.THRESH_BINARY)[1])
show("adaptive", cv2.adaptiveThreshold(g, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY, 7, 2))
show("canny", cv2.Canny(cv2.cvtColor(c, cv2.COLOR_BGR2GRAY), 50, 150))
show("pyrDown", cv2.pyrDown(c))
show("flip", cv2.flip(c, 1))
show("transpose", cv2.transpose(g))
show("warp", cv2.warpAffine(c, np.float32([[0.9, 0.1, 5], [-0.1, 0.9, 20]]), (320, 240)))
show("integral", cv2.integral(g))
show("histogram", cv2.calcHist([g], [0], None, [64], [0, 256]))
show("match", cv2.matchTemplate(g, cv2.UMat(gray[20:36, 30:46]), cv2.TM_SQDIFF))
show("float", cv2.multiply(cv2.UMat(gray.astype(np.float32)), cv2.UMat(gray.astype(np.float32)), scale=0.5))

# A long chain whose results stay on the device: many small kernels, and buffers that come and go.
chain = g
for step in range(60):
    chain = cv2.bitwise_xor(cv2.blur(chain, (3, 3)), cv2.UMat(np.full_like(gray, step)))
show("chain", chain)

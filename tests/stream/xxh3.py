# SPDX-License-Identifier: Apache-2.0
"""XXH3-128 without a seed, from its specification, for tests that must not share code with what they test. Slow, and right."""

from struct import unpack_from

M64 = (1 << 64) - 1
P32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
P64 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
MIX1, MIX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")


def u32(b, at=0):
    return unpack_from("<I", b, at)[0]


def u64(b, at=0):
    return unpack_from("<Q", b, at)[0]


def avalanche(h):
    h ^= h >> 37
    h = h * MIX1 & M64
    return h ^ h >> 32


def avalanche64(h):
    h ^= h >> 33
    h = h * P64[1] & M64
    h ^= h >> 29
    h = h * P64[2] & M64
    return h ^ h >> 32


def swap(n, size):
    return int.from_bytes(n.to_bytes(size, "little"), "big")


def fold(a, b):
    product = a * b
    return (product ^ product >> 64) & M64


def mix16(b, at, secret):
    return fold(u64(b, at) ^ u64(SECRET, secret), u64(b, at + 8) ^ u64(SECRET, secret + 8))


def mix32(acc, b, one, two, secret):
    low = (acc[0] + mix16(b, one, secret) & M64) ^ (u64(b, two) + u64(b, two + 8) & M64)
    high = (acc[1] + mix16(b, two, secret + 16) & M64) ^ (u64(b, one) + u64(b, one + 8) & M64)
    return low, high


def short(b):
    n = len(b)
    if n == 0:
        return avalanche64(u64(SECRET, 64) ^ u64(SECRET, 72)), avalanche64(u64(SECRET, 80) ^ u64(SECRET, 88))
    if n < 4:
        low = b[0] << 16 | b[n >> 1] << 24 | b[n - 1] | n << 8
        high = swap(low, 4)
        high = (high << 13 | high >> 19) & 0xFFFFFFFF
        return avalanche64(low ^ u32(SECRET) ^ u32(SECRET, 4)), avalanche64(high ^ u32(SECRET, 8) ^ u32(SECRET, 12))
    if n <= 8:
        keyed = u32(b) + (u32(b, n - 4) << 32) ^ u64(SECRET, 16) ^ u64(SECRET, 24)
        product = keyed * (P64[0] + (n << 2))
        low, high = product & M64, product >> 64
        high = high + (low << 1) & M64
        low ^= high >> 3
        low = (low ^ low >> 35) * MIX2 & M64
        return low ^ low >> 28, avalanche(high)
    last = u64(b, n - 8)
    product = (u64(b) ^ last ^ u64(SECRET, 32) ^ u64(SECRET, 40)) * P64[0]
    low, high = product & M64, product >> 64
    low = low + (n - 1 << 54) & M64
    last ^= u64(SECRET, 48) ^ u64(SECRET, 56)
    high = high + last + (last & 0xFFFFFFFF) * (P32[1] - 1) & M64
    low ^= swap(high, 8)
    product = low * P64[1]
    return avalanche(product & M64), avalanche((product >> 64) + high * P64[1] & M64)


def middle(b):
    n = len(b)
    acc = n * P64[0] & M64, 0
    if n <= 128:
        for i in reversed(range((n - 1) // 32)):
            acc = mix32(acc, b, 16 * (i + 1), n - 16 * (i + 2), 32 * (i + 1))
        acc = mix32(acc, b, 0, n - 16, 0)
    else:
        for i in range(4):
            acc = mix32(acc, b, 32 * i, 32 * i + 16, 32 * i)
        acc = avalanche(acc[0]), avalanche(acc[1])
        for i in range(4, n // 32):
            acc = mix32(acc, b, 32 * i, 32 * i + 16, 3 + 32 * (i - 4))
        acc = mix32(acc, b, n - 16, n - 32, 103)
    low = acc[0] + acc[1] & M64
    high = acc[0] * P64[0] + acc[1] * P64[3] + n * P64[1] & M64
    return avalanche(low), -avalanche(high) & M64


def accumulate(acc, b, at, secret):
    data = unpack_from("<8Q", b, at)
    keys = unpack_from("<8Q", SECRET, secret)
    for i in range(8):
        key = data[i] ^ keys[i]
        acc[i ^ 1] = acc[i ^ 1] + data[i] & M64
        acc[i] = acc[i] + (key & 0xFFFFFFFF) * (key >> 32) & M64


def merge(acc, secret, start):
    for i in range(4):
        start += fold(acc[2 * i] ^ u64(SECRET, secret + 16 * i), acc[2 * i + 1] ^ u64(SECRET, secret + 16 * i + 8))
    return avalanche(start & M64)


def long(b):
    n = len(b)
    acc = [P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]]
    blocks = (n - 1) // 1024
    for stripe in range((n - 1) // 64):
        accumulate(acc, b, 64 * stripe, 8 * (stripe % 16))
        if stripe % 16 == 15 and stripe // 16 < blocks:
            keys = unpack_from("<8Q", SECRET, 128)
            acc = [(a ^ a >> 47 ^ k) * P32[0] & M64 for a, k in zip(acc, keys)]
    accumulate(acc, b, n - 64, 121)
    return merge(acc, 11, n * P64[0] & M64), merge(acc, 117, ~(n * P64[1]) & M64)


def xxh3(b):
    """(low, high)"""
    return short(b) if len(b) <= 16 else middle(b) if len(b) <= 240 else long(b)

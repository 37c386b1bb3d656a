import ctypes, ctypes.util, math, struct

libc = ctypes.CDLL(None, use_errno=True)
libm = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
libm.cos.restype, libm.cos.argtypes = ctypes.c_double, [ctypes.c_double]
print(libm.cos(0.5) == math.cos(0.5), libc.abs(-7), libc.strlen(b"hello"))
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
numbers = (ctypes.c_int * 5)(5, 3, 1, 4, 2)
libc.qsort(numbers, 5, 4, COMPARE(lambda a, b: a[0] - b[0]))
print(list(numbers))


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int16), ("y", ctypes.c_double)]


print(ctypes.sizeof(Point), struct.calcsize("hd"), bytes(Point(1, 2.0)).hex())
print(libc.open(b"/no/such/file", 0), ctypes.get_errno())

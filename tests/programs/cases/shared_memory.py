import multiprocessing
from multiprocessing import shared_memory


def add(name):
    memory = shared_memory.SharedMemory(name)
    memory.buf[:5] = b"hello"
    memory.close()


if __name__ == "__main__":
    memory = shared_memory.SharedMemory(create=True, size=1 << 20)
    process = multiprocessing.Process(target=add, args=(memory.name,))
    process.start()
    process.join()
    print(bytes(memory.buf[:5]), memory.size)
    memory.close()
    memory.unlink()
    numbers = shared_memory.ShareableList([1, 2.5, "three", None])
    print(list(numbers))
    numbers.shm.close()
    numbers.shm.unlink()

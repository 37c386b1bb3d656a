import multiprocessing, os


def square(number):
    return number * number


def fill(queue, count):
    for number in range(count):
        queue.put(number)
    queue.put(None)


if __name__ == "__main__":
    for method in ("fork", "spawn"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            print(method, sum(pool.map(square, range(100))), pool.apply(square, (7,)))
    queue = multiprocessing.Queue()
    process = multiprocessing.Process(target=fill, args=(queue, 50))
    process.start()
    print(sum(iter(queue.get, None)))
    process.join()
    print(process.exitcode)
    with multiprocessing.Manager() as manager:
        shared = manager.dict(a=1)
        shared["b"] = 2
        print(dict(shared))
    value = multiprocessing.Value("i", 0)
    with value.get_lock():
        value.value += 5
    print(value.value)

import concurrent.futures as futures


def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


if __name__ == "__main__":
    with futures.ThreadPoolExecutor(8) as threads, futures.ProcessPoolExecutor(2) as processes:
        print(list(threads.map(fibonacci, range(15))))
        print([future.result() for future in [processes.submit(fibonacci, n) for n in range(15)]])

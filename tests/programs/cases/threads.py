import queue, threading

work, done, lock, total = queue.Queue(), [], threading.Lock(), 0
barrier, event = threading.Barrier(4), threading.Event()


def worker():
    global total
    barrier.wait()
    while (item := work.get()) is not None:
        with lock:
            total += item * item
            done.append(item)


threads = [threading.Thread(target=worker) for _ in range(4)]
for thread in threads:
    thread.start()
for number in range(1000):
    work.put(number)
for _ in threads:
    work.put(None)
for thread in threads:
    thread.join()
timer = threading.Timer(0.01, event.set)
timer.start()
print(total, sorted(done) == list(range(1000)), event.wait(5))

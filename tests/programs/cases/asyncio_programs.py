import asyncio


async def child():
    process = await asyncio.create_subprocess_exec("tr", "a-z", "A-Z", stdin=-1, stdout=-1)
    out, _ = await process.communicate(b"hello")
    return out


async def echo(reader, writer):
    writer.write((await reader.readline())[::-1].strip() + b"\n")
    await writer.drain()
    writer.close()


async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    async def ask(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"line%d\n" % number)
        answer = await reader.readline()
        writer.close()
        return answer

    print(await asyncio.gather(*(ask(number) for number in range(5))))
    print(await asyncio.gather(child(), child()))
    try:
        await asyncio.wait_for(asyncio.sleep(10), 0.05)
    except asyncio.TimeoutError:
        print("timed out")
    print(await asyncio.to_thread(sum, range(100)))
    server.close()


asyncio.run(main())

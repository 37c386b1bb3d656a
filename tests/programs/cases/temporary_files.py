import os, pathlib, shutil, stat, tempfile

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "c.txt").write_text("text\n" * 3)
    (folder / "link").symlink_to("a/b/c.txt")
    os.link(folder / "a/b/c.txt", folder / "hard")
    print(sorted(str(path.relative_to(folder)) for path in folder.rglob("*")))
    print((folder / "link").read_text().count("text"), (folder / "hard").stat().st_nlink)
    (folder / "hard").chmod(0o640)
    print(stat.filemode((folder / "hard").stat().st_mode))
    shutil.copytree(folder / "a", folder / "copy")
    print(shutil.make_archive(str(folder / "all"), "zip", folder / "a").endswith("all.zip"))
    os.rename(folder / "copy", folder / "moved")
    print((folder / "moved/b/c.txt").exists(), (folder / "copy").exists())
    os.mkfifo(folder / "pipe")
    print(stat.S_ISFIFO(os.stat(folder / "pipe").st_mode))
print(os.path.exists(name))
with tempfile.NamedTemporaryFile() as file, tempfile.SpooledTemporaryFile(max_size=10) as spooled:
    file.write(b"x" * 100000)
    file.flush()
    spooled.write(b"y" * 100)
    print(os.path.getsize(file.name), spooled.tell())

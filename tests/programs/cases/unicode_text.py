import codecs, locale, re, sys, textwrap, unicodedata

text = "naïve café — 日本語 🦀 \u202eright\u202c Ελληνικά עברית"
print(text, len(text), len(text.encode()), text.upper())
print(unicodedata.normalize("NFD", "é").encode("unicode_escape"), unicodedata.name("🦀"))
print(re.findall(r"\w+", text), sorted("zaéZ"), "straße".casefold())
for encoding in ("utf-8", "utf-16", "latin-1", "shift_jis", "koi8-r", "idna"):
    try:
        print(encoding, "日本".encode(encoding))
    except UnicodeError as error:
        print(encoding, type(error).__name__)
open("ünïcode-日本.txt", "w").write(text)
print(open("ünïcode-日本.txt").read() == text, sys.getfilesystemencoding(), sys.stdout.encoding)
print(textwrap.fill("word " * 30, 40), locale.getlocale()[1], codecs.lookup("utf8").name)

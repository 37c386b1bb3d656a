import importlib, os, pathlib, sys

folder = pathlib.Path("package")
folder.mkdir()
(folder / "__init__.py").write_text("from .inner import answer\n")
(folder / "inner.py").write_text("def answer():\n    return 42\n")
sys.path.insert(0, os.getcwd())
import package

print(package.answer(), importlib.reload(package).answer(), package.__name__)
for name in ("json", "xml.etree.ElementTree", "email", "html", "calendar", "difflib", "ast", "inspect", "dis",
             "logging", "argparse", "configparser", "pickle", "shelve", "statistics", "fractions", "heapq",
             "itertools", "functools", "typing", "enum", "contextlib", "traceback", "uuid", "random", "queue",
             "selectors", "http.client", "ftplib", "imaplib", "curses", "readline", "zoneinfo", "tomllib"):
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(error)
try:
    import no_such_module
except ModuleNotFoundError as error:
    print(error)

import os, sqlite3, tempfile

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "data.db")
    with sqlite3.connect(path) as database:
        database.execute("pragma journal_mode=wal")
        database.execute("create table t (id integer primary key, name text, amount real)")
        database.executemany("insert into t (name, amount) values (?, ?)", [(f"n{n}", n / 4) for n in range(1000)])
        database.create_function("double", 1, lambda value: value * 2)
    other = sqlite3.connect(path)
    print(other.execute("select count(*), sum(amount), max(name) from t").fetchone())
    print(database.execute("select double(amount) from t where id = 7").fetchone())
    print(other.execute("with recursive f(a,b) as (select 0,1 union all select b,a+b from f limit 20) select group_concat(a) from f").fetchone())
    try:
        database.execute("insert into t (id) values (1)")
    except sqlite3.IntegrityError as error:
        print(error)

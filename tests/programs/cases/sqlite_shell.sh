printf 'name,amount\na,1\nb,2.5\n' > data.csv
sqlite3 db <<'SQL'
.mode csv
.import data.csv t
select name, amount * 2 from t order by 1 desc;
create index i on t(name);
.mode json
select count(*) as n, sum(amount) as s from t;
select json_extract('{"a":[1,2]}', '$.a[1]') as x, upper('é') as u, strftime('%Y', 0, 'unixepoch') as y;
SQL
sqlite3 db 'pragma integrity_check'; sqlite3 db 'select nothing from t' 2>/dev/null; echo "exit $?"

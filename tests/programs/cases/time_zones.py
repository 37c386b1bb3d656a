import datetime, os, time, zoneinfo

try:
    for name in ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"):
        zone = zoneinfo.ZoneInfo(name)
        print(name, datetime.datetime(2024, 7, 1, 12, tzinfo=zone).utcoffset(), datetime.datetime(2024, 1, 1, tzinfo=zone).tzname())
except zoneinfo.ZoneInfoNotFoundError as error:
    print("no time zones here:", error)
os.environ["TZ"] = "EST5EDT"
time.tzset()
print(time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(1720000000)), time.tzname)
print(abs(time.time() - datetime.datetime.now(datetime.timezone.utc).timestamp()) < 1, time.monotonic() > 0)

const http = require("http"), net = require("net");
const server = http.createServer((request, response) => {
  let body = "";
  request.on("data", chunk => body += chunk).on("end", () => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ method: request.method, url: request.url, length: body.length }));
  });
}).listen(0, "127.0.0.1", async () => {
  const base = `http://127.0.0.1:${server.address().port}`;
  console.log(await (await fetch(base + "/path?q=1")).json());
  console.log(await (await fetch(base, { method: "POST", body: "x".repeat(100000) })).json());
  net.connect(server.address().port, "127.0.0.1").on("data", data => {
    console.log(data.toString().split("\r\n")[0]);
    server.close();
    server.closeAllConnections();
  }).write("garbage\r\n\r\n");
});

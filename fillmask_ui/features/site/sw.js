// Keeps the files of one version, so that the page opens without a network. VERSION and FILES come first.
const NAME = `fillmask-${VERSION}`;

async function keep() {
  const cache = await caches.open(NAME);
  for (const file of FILES) if (!(await cache.match(file))) await cache.add(file);
}

async function leave() {
  for (const name of await caches.keys()) if (name.startsWith("fillmask-") && name !== NAME) await caches.delete(name);
  await clients.claim();
}

addEventListener("install", (event) => event.waitUntil(keep().then(() => skipWaiting())));
addEventListener("activate", (event) => event.waitUntil(leave()));
addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  const request = event.request.mode === "navigate" ? "./" : event.request; // index.html is the same page
  event.respondWith(caches.match(request, { cacheName: NAME }).then((cached) => cached ?? fetch(event.request)));
});

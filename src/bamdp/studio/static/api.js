// Talking to the server: requests that fail say why, events that break come back.

export class Refusal extends Error {
  // FastAPI writes what is wrong as text, or as a list of fields
  constructor(status, { detail = `the server answered ${status}` }) {
    const [first] = Array.isArray(detail) ? detail : [];
    const field = first?.loc.at(-1) ?? null;
    super(first ? `${field}: ${first.msg}` : detail);
    this.status = status;
  }
}

async function send(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refusal(0, { detail: "the studio does not answer; is it still running?" });
  }
  const data = response.status === 204 ? {} : await response.json().catch(() => ({}));
  if (!response.ok) throw new Refusal(response.status, data);
  return data;
}

export const catalogue = () => send("GET", "/api/catalogue");
export const open = (choice) => send("POST", "/api/sessions", choice);
export const end = (id) => send("DELETE", `/api/sessions/${id}`);
export const command = (id, what, value) => send("POST", `/api/sessions/${id}`, { do: what, value });
export const node = (id, lane, t, number) =>
  send("GET", `/api/sessions/${id}/node?lane=${lane}&t=${t}&node=${number}`);
export const state = (id, lane, number) => send("GET", `/api/sessions/${id}/state?lane=${lane}&state=${number}`);

const KINDS = ["status", "opened", "frame", "why", "closed"];

// Listens until `stop` is called; `lost` is called when the session has ended.
export function listen(id, on, lost) {
  let source = null, stopped = false, tries = 0;
  const begin = () => {
    source = new EventSource(`/api/sessions/${id}/events`);
    for (const kind of KINDS) {
      source.addEventListener(kind, (event) => {
        tries = 0;
        on(kind, JSON.parse(event.data));
      });
    }
    source.onerror = () => {
      if (stopped || source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
      tries += 1;
      if (tries > 8) lost();
      else setTimeout(() => stopped || begin(), 150 * tries);
    };
  };
  begin();
  return () => {
    stopped = true;
    source.close();
  };
}

// On every page: times in the reader's zone.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const calendar = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

export function localiseTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    time.textContent = (time.hasAttribute("data-full") ? calendar : clock).format(at);
    time.title = calendar.format(at);
  }
}

localiseTimes(document);

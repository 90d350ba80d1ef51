/** Icons on a 24 × 24 grid, drawn with one stroke. They are decoration: text next to them says what they mean. */
const paths = {
  overview: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-3H4zM14 7h6V4h-6z',
  events: 'M4 6h16M4 12h16M4 18h10',
  endpoint: 'M12 3v4M12 17v4M3 12h4M17 12h4M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z',
  dead: 'M4 7l8 6 8-6M4 5h16v14H4zM9 16l-2 2M15 16l2 2',
  live: 'M3 12h4l3-8 4 16 3-8h4',
  types: 'M20 12l-8 8-9-9V3h8zM7.5 7.500h.01',
  keys: 'M15 9a4 4 0 1 1-3.5 5.900L9 17.500H7v2H4v-3l6.2-6.200A4 4 0 0 1 15 9zM16 12.500h.01',
  storage: 'M4 6c0-4 16-4 16 0v12c0 4-16 4-16 0zM4 6c0 4 16 4 16 0M4 12c0 4 16 4 16 0',
  audit: 'M9 4h6v3H9zM7 5.500H5V20h14V5.500h-2M9 12h6M9 16h4',
  inbox: 'M4 13l2.5-8h11L20 13v6H4zM4 13h5l1 2.500h4l1-2.500h5',
  tenants: 'M4 20V8l8-4 8 4v12M9 20v-6h6v6M9 10h.01M15 10h.01',
  notices: 'M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 20.500h4',
  book: 'M5 4h10a3 3 0 0 1 3 3v13H8a3 3 0 0 1-3-3zM5 17a3 3 0 0 1 3-3h10',
  start: 'M5 21V4h11l-2 4 2 4H5',
  search: 'M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'M5 12.500l4.5 4.500L19 7.5',
  cross: 'M6 6l12 12M18 6L6 18',
  warning: 'M12 4L2.5 20h19zM12 10v4.500M12 17.500h.01',
  info: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 11v5.500M12 7.500h.01',
  chevron: 'M9 6l6 6-6 6',
  replay: 'M4 12a8 8 0 1 0 2.5-5.800M4 4v4.500h4.5',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 5l12 7-12 7z',
  send: 'M4 12l16-8-6 16-3-6.500z',
  plus: 'M12 5v14M5 12h14',
  sun: 'M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2.500v2M12 19.500v2M2.5 12h2M19.5 12h2M5.3 5.300l1.4 1.400M17.3 17.300l1.4 1.400M5.3 18.700l1.4-1.400M17.3 6.700l1.4-1.4',
  moon: 'M19.5 14.500A8 8 0 0 1 9.5 4.500a8 8 0 1 0 10 10z',
  menu: 'M4 7h16M4 12h16M4 17h16',
  out: 'M14 4H5v16h9M10 12h10M17 8.500l3.5 3.5-3.5 3.5',
  lock: 'M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3',
  eye: 'M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 9.500a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z',
  external: 'M14 4h6v6M20 4l-9 9M18 14v6H4V6h6',
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.8"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={paths[name]} />
    </svg>
  );
}

export function Logo() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" fill="#4f46e5" />
      <g fill="none" stroke="#fff" strokeWidth="2.6" strokeLinecap="round" strokeLinejoin="round">
        <circle cx="14.5" cy="17.5" r="5.5" />
        <path d="M6 12h8.5" />
        <path d="M14.5 12c5 0 8-1.5 11-4v14c-2-1.8-3.5-2.6-5.5-3.2" />
      </g>
    </svg>
  );
}

import { createStore, useStore } from '../api/store.ts';

/** The same breakpoint as in the style sheets: narrower screens get the layout for phones. */
const wideScreen = window.matchMedia('(min-width: 821px)');
const isWide = createStore(wideScreen.matches);
wideScreen.addEventListener('change', () => isWide.set(wideScreen.matches));

export const useIsWide = (): boolean => useStore(isWide);

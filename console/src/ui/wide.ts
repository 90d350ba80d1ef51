import { createStore, useStore } from '../api/store.ts';

/** As in the style sheets: below it is a phone. */
const wide = window.matchMedia('(min-width: 821px)');
const isWide = createStore(wide.matches);
wide.addEventListener('change', () => isWide.set(wide.matches));

export const useIsWide = (): boolean => useStore(isWide);

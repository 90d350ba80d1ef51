/**
 * The language of the console's numbers and times: English, whatever the browser's language is. `main.tsx` imports this
 * module before all others.
 *
 * uPlot formats numbers in `navigator.language` when it loads. A browser that runs without a locale reports
 * "en-US@posix", which Intl rejects. uPlot would then throw, and the page would stay blank. So an invalid language is
 * replaced here.
 */
export const NUMBER_LOCALE = 'en';
/** Days before months, and hours from 0 to 23. */
export const TIME_LOCALE = 'en-GB';

if (!isValidLocale(navigator.language))
  Object.defineProperty(navigator, 'language', { value: NUMBER_LOCALE, configurable: true });

function isValidLocale(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag).length > 0;
  } catch {
    return false;
  }
}

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const KIB = 1024;
export const MIB = 1024 * KIB;
export const GIB = 1024 * MIB;

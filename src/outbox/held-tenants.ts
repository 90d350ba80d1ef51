/**
 * Tenants whose rows stay in the outbox, because they have reached a limit.
 *
 *   refused ──▶ held for a second ──▶ offered again by the next read from the first row ──▶ stored, or held again
 *
 * Until a read starts at the first row, reads skip a held tenant: its newer rows must not overtake the rows that were refused.
 */
const HOLD_MS = 1_000;
const REPORT_EVERY_MS = 60_000;

interface Hold {
  readonly until: number;
  readonly reportedAt: number;
  /** False: its rows were offered again. The entry stays only to limit how often the hold is reported. */
  readonly isHeld: boolean;
}

export class HeldTenants {
  readonly #onHeld: (tenant: string, reason: string) => void;
  readonly #holds = new Map<string, Hold>();

  constructor(onHeld: (tenant: string, reason: string) => void) {
    this.#onHeld = onHeld;
  }

  add(tenant: string, reason: string, now: number): void {
    const reportedAt = this.#holds.get(tenant)?.reportedAt;
    const mustReport = reportedAt === undefined || now - reportedAt >= REPORT_EVERY_MS;
    this.#holds.set(tenant, {
      until: now + HOLD_MS,
      reportedAt: mustReport ? now : reportedAt,
      isHeld: true,
    });
    if (mustReport) this.#onHeld(tenant, reason);
  }

  /** Returns the tenants that the next read must skip. `fromFirstRow`: the read begins with the first row. */
  startRead(now: number, fromFirstRow: boolean): string[] {
    const skipped: string[] = [];
    for (const [tenant, hold] of this.#holds) {
      if (hold.isHeld && (!fromFirstRow || hold.until > now)) skipped.push(tenant);
      else if (now - hold.reportedAt >= REPORT_EVERY_MS) this.#holds.delete(tenant);
      else this.#holds.set(tenant, { ...hold, isHeld: false });
    }
    return skipped;
  }
}

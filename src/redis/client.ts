/**
 * One connection to Redis, on `@redis/client`. Nothing else imports that package, and it is loaded only if Redis is
 * configured. The package never connects again by itself and queues nothing while it is not connected: `RedisLink` decides
 * both.
 */
export interface RedisSession {
  /** Rejects if Redis answers with an error, and when the connection is lost. Waits without a limit otherwise. */
  run(args: readonly (string | Buffer)[]): Promise<unknown>;
  /** Resolves when messages of these channels arrive. */
  subscribe(
    channels: readonly string[],
    onMessage: (message: Buffer, channel: string) => void,
  ): Promise<void>;
  unsubscribe(channel: string): Promise<void>;
  /** Closes the connection at once. Commands without an answer are rejected. */
  destroy(): void;
}

export interface RedisSessionOptions {
  readonly url: string;
  readonly connectTimeoutMs: number;
  /** Called once, when the connection is lost. */
  readonly onLost: (error: unknown) => void;
}

/** Connects and signs in. Rejects if that fails or takes longer than `connectTimeoutMs`. */
export async function openRedisSession(options: RedisSessionOptions): Promise<RedisSession> {
  const { url, connectTimeoutMs, onLost } = options;
  const { createClient } = await import('@redis/client');
  const client = createClient({
    url,
    RESP: 3,
    disableOfflineQueue: true,
    maintNotifications: 'disabled',
    socket: { reconnectStrategy: false, connectTimeout: connectTimeoutMs },
  });
  let isOpen = false;
  client.on('error', (error) => {
    if (!isOpen) return;
    isOpen = false;
    onLost(error);
  });
  // The package limits the time to connect, but not the time to sign in: a server that hangs takes connections.
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('Redis does not answer.')), connectTimeoutMs);
  });
  try {
    await Promise.race([client.connect(), timeout]);
  } catch (error) {
    client.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
  }
  isOpen = true;
  return {
    run: (args) => client.sendCommand(args as (string | Buffer)[]),
    subscribe: (channels, onMessage) =>
      client.subscribe(
        channels as string[],
        (message, channel) => onMessage(message, channel.toString()),
        true,
      ),
    unsubscribe: (channel) => client.unsubscribe(channel),
    destroy() {
      isOpen = false;
      client.destroy();
    },
  };
}

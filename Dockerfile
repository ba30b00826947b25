# The manager in an image with nothing else in it: no shell, no libc, not root.
#   docker build -t tidekeeper:latest --build-arg VERSION=$(git describe --tags) .

# Built on the machine's own platform and cross-compiled, which is much faster
# than compiling under emulation.
# By digest, which cannot be moved; the release builds with the same Go.
FROM --platform=$BUILDPLATFORM golang:1.26.8@sha256:6c2a5538f964f1c82f97ad14988bf05de100d922d159d0e398b54c7b0ca0c6c9 AS build
WORKDIR /src
# The modules first, so that a change of the code does not download them again.
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY internal internal
ARG TARGETOS TARGETARCH VERSION=v0.0.0-unknown
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath \
    -ldflags "-s -w -X tidekeeper.dev/tidekeeper/internal/version.version=$VERSION" \
    -o /tidekeeper ./cmd/tidekeeper

FROM scratch
LABEL org.opencontainers.image.title="tidekeeper" \
      org.opencontainers.image.description="Keeps labels and taints of node pools as declared, and restarts workloads on a schedule" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /tidekeeper /tidekeeper
# By number, as there is no /etc/passwd; runAsNonRoot needs a number anyway.
USER 65532:65532
# Metrics and probes.
EXPOSE 8443 8081
ENTRYPOINT ["/tidekeeper"]

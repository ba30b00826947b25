# The manager in an image with nothing else in it: no shell, no libc, not root.
#   docker build -t tidekeeper:latest --build-arg VERSION=$(git describe --tags) .

# Built on the machine's own platform and cross-compiled, which is much faster
# than compiling under emulation.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
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
      org.opencontainers.image.description="Keeps Kubernetes node pools in shape and shows their water level" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /tidekeeper /tidekeeper
# By number, as there is no /etc/passwd; runAsNonRoot needs a number anyway.
USER 65532:65532
# Metrics and probes.
EXPOSE 8443 8081
ENTRYPOINT ["/tidekeeper"]

# The image of the Argo CD sidecar: one static program and the public CAs, no
# shell. The sidecar's entry point is argocd-cmp-server, which Argo CD's own
# image provides (manifests/argocd/sidecar.yaml), so PATH must find syncgate.
#
# Release builds give GO_IMAGE by digest.
ARG GO_IMAGE=docker.io/library/golang:1.26.8-bookworm
FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY plugin plugin
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /out/syncgate ./cmd/syncgate \
	&& mkdir -m 1777 /out/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/syncgate /usr/local/bin/syncgate
COPY --from=build --chown=999:999 /out/tmp /tmp
ENV PATH=/usr/local/bin HOME=/tmp
USER 999:999
ENTRYPOINT ["/usr/local/bin/syncgate"]

# One image for all of it: static programs and the public CAs, no shell.
#
# - the Argo CD sidecar: its entry point is argocd-cmp-server, which Argo CD's own
#   image provides (manifests/argocd/sidecar.yaml), so PATH must find syncgate;
# - the controller beside Argo CD: command [syncgate-controller] (manifests/argocd/controller);
# - the admission webhook: command [syncgate-webhook] (manifests/webhook);
# - its certificate Job: command [syncgate, certificates].
#
# Release builds give GO_IMAGE by digest.
ARG GO_IMAGE=docker.io/library/golang:1.26.8-bookworm
FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY manifests manifests
COPY plugin plugin
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /out/bin/ ./cmd/syncgate ./cmd/syncgate-controller ./cmd/syncgate-webhook \
	&& mkdir -m 1777 /out/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/bin/ /usr/local/bin/
COPY --from=build --chown=999:999 /out/tmp /tmp
ENV PATH=/usr/local/bin HOME=/tmp
USER 999:999
ENTRYPOINT ["/usr/local/bin/syncgate"]

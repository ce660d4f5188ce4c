package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/syncgate/syncgate/plugin/pin"
)

// manifestTypes is what a tag may be: an index comes first, so that a
// multi-platform image is pinned as a whole and every node finds its platform.
// Schema 1 is left out: its digest does not cover its bytes.
var manifestTypes = []string{
	"application/vnd.oci.image.index.v1+json",
	"application/vnd.docker.distribution.manifest.list.v2+json",
	"application/vnd.oci.image.manifest.v1+json",
	"application/vnd.docker.distribution.manifest.v2+json",
}

// maxManifest is the least that registries must accept (OCI distribution
// spec) and the most that most do.
const maxManifest = 4 << 20

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func (r *Resolver) lookup(ctx context.Context, tag name.Tag) (string, error) {
	auth, err := authn.Resolve(ctx, r.keychain, tag.Context())
	if err != nil {
		// The text may hold what a credential helper printed: not repeated.
		return "", errCredentials
	}
	rt, err := transport.NewWithContext(ctx, tag.Context().Registry, auth, r.transport, []string{tag.Scope(transport.PullScope)})
	if err != nil {
		return "", &anonymousError{auth == authn.Anonymous, err}
	}
	client := &http.Client{Transport: rt}
	digest, err := head(ctx, client, tag)
	if err != nil {
		return "", &anonymousError{auth == authn.Anonymous, err}
	}
	return digest, nil
}

// head asks for the digest header, and for the manifest only where a
// registry gives no such header.
func head(ctx context.Context, client *http.Client, tag name.Tag) (string, error) {
	resp, err := request(ctx, client, http.MethodHead, tag)
	if err != nil {
		return "", err
	}
	resp.Body.Close()
	header := resp.Header.Get("Docker-Content-Digest")
	if resp.StatusCode == http.StatusMethodNotAllowed || resp.StatusCode == http.StatusOK && header == "" {
		return get(ctx, client, tag)
	}
	if err := transport.CheckError(resp, http.StatusOK); err != nil {
		return "", err
	}
	if err := isManifest(resp); err != nil {
		return "", err
	}
	return checked(header)
}

func get(ctx context.Context, client *http.Client, tag name.Tag) (string, error) {
	resp, err := request(ctx, client, http.MethodGet, tag)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if err := transport.CheckError(resp, http.StatusOK); err != nil {
		return "", err
	}
	if err := isManifest(resp); err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxManifest+1))
	if err != nil {
		return "", err
	}
	if len(data) > maxManifest {
		return "", fmt.Errorf("%w: the manifest is larger than %d bytes", pin.ErrBadAnswer, maxManifest)
	}
	sum := sha256.Sum256(data)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	if header := resp.Header.Get("Docker-Content-Digest"); header != "" && header != digest {
		return "", fmt.Errorf("%w: got a manifest with digest %s, want %q as its header says", pin.ErrBadAnswer, digest, clip(header))
	}
	return digest, nil
}

func request(ctx context.Context, client *http.Client, method string, tag name.Tag) (*http.Response, error) {
	u := url.URL{
		Scheme: tag.Scheme(), // transport.NewWithContext found out which one works
		Host:   tag.RegistryStr(),
		Path:   "/v2/" + tag.RepositoryStr() + "/manifests/" + tag.TagStr(),
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", strings.Join(manifestTypes, ","))
	return client.Do(req)
}

// isManifest keeps the login page of a captive portal or a proxy, served
// with status 200, from being pinned.
func isManifest(resp *http.Response) error {
	header := resp.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(header)
	if err == nil {
		for _, t := range manifestTypes {
			if kind == t {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: got content type %q, want an image manifest or index", pin.ErrBadAnswer, clip(header))
}

func checked(digest string) (string, error) {
	if !digestForm.MatchString(digest) {
		return "", fmt.Errorf("%w: got digest %q, want sha256: and 64 lower-case hex digits", pin.ErrBadAnswer, clip(digest))
	}
	return digest, nil
}

func clip(s string) string {
	if len(s) > 100 {
		return strings.ToValidUTF8(s[:100], "") + "..."
	}
	return s
}

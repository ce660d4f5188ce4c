// Package artifact fetches what Flux's source-controller, or another producer
// of artifacts, has packed: by URL and digest, as kustomize-controller does, but
// bounded in bytes, files and time, because whoever writes the repository
// chooses what is in it. Nothing is unpacked before the digest is right.
//
//	f := artifact.New(artifact.Limits{})
//	err := f.Fetch(ctx, status.Artifact.URL, status.Artifact.Digest, dir)
package artifact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/hashicorp/go-cleanhttp"
	"github.com/hashicorp/go-retryablehttp"
)

// Classes of errors, told apart with errors.Is. ErrTooLarge and ErrUnsafe are
// about what was packed and stay; all others may pass if it is tried again.
var (
	// ErrNotFound: there is no such file, because the source has a newer one or
	// has lost it. It comes back by itself.
	ErrNotFound = errors.New("the source has no such artifact now")
	// ErrDigest: what came is not what the status of the source says.
	ErrDigest = errors.New("the digest does not match")
	// ErrTooLarge: a limit was reached.
	ErrTooLarge = errors.New("larger than the gate takes")
	// ErrUnsafe: an entry of the archive that would leave the directory, or is no
	// file; or no archive at all.
	ErrUnsafe = errors.New("not an archive of plain files")
)

// Limits bound one artifact. What is zero is the default.
type Limits struct {
	Packed   int64         // bytes that are downloaded: 50 MiB
	Unpacked int64         // bytes of all files together: 200 MiB
	Files    int           // files and folders: 50,000
	Time     time.Duration // for all of it, retries included: one minute
}

const (
	defaultPacked   = 50 << 20
	defaultUnpacked = 200 << 20
	defaultFiles    = 50_000
	defaultTime     = time.Minute
)

// Fetcher fetches artifacts. It may be used by several goroutines.
type Fetcher struct {
	limits    Limits
	client    *retryablehttp.Client
	checkouts checkouts
}

// New returns a Fetcher that tries a request four times at most: what a
// restarted source-controller needs.
func New(l Limits) *Fetcher {
	l.Packed = cmp.Or(l.Packed, defaultPacked)
	l.Unpacked = cmp.Or(l.Unpacked, defaultUnpacked)
	l.Files = cmp.Or(l.Files, defaultFiles)
	l.Time = cmp.Or(l.Time, defaultTime)
	transport := cleanhttp.DefaultPooledTransport()
	transport.DisableCompression = true // the digest is of the packed bytes
	c := retryablehttp.NewClient()
	c.Logger = nil
	c.RetryMax, c.RetryWaitMin, c.RetryWaitMax = 3, 500*time.Millisecond, 5*time.Second
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler
	c.HTTPClient = &http.Client{
		Transport: transport,
		// The status of a source is written by whoever may; it does not get to send
		// the gate on.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Fetcher{limits: l, client: c}
}

// Fetch downloads the tarball at address, an http or https URL, checks that its
// digest ("sha256:" and hex digits; sha384 and sha512 too) is the given one, and
// unpacks it into dir, which must exist and be empty. After an error dir may
// hold a part of it. Links within the archive are left out, as
// kustomize-controller leaves them out.
func (f *Fetcher) Fetch(ctx context.Context, address, digest, dir string) error {
	want, err := parseDigest(digest)
	if err != nil {
		return fmt.Errorf("fetching artifact: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.limits.Time, fmt.Errorf("took longer than %s", f.limits.Time))
	defer cancel()
	file, err := os.CreateTemp("", "syncgate-artifact-*.tar.gz")
	if err != nil {
		return fmt.Errorf("fetching artifact: %w", err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := f.download(ctx, address, want, file); err != nil {
		return fmt.Errorf("fetching artifact %.200q: %w", address, caused(ctx, err))
	}
	if err := unpack(ctx, file, dir, f.limits); err != nil {
		return fmt.Errorf("unpacking artifact %.200q: %w", address, caused(ctx, err))
	}
	return nil
}

// caused says what ended the context, if that is what ended the work.
func caused(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return errors.Join(context.Cause(ctx))
}

// download leaves file at its beginning, with what digest is of.
func (f *Fetcher) download(ctx context.Context, address string, want digest, file *os.File) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("want an http or https URL")
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return ErrNotFound
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("got status %d, want 200", resp.StatusCode)
	case resp.ContentLength > f.limits.Packed:
		return fmt.Errorf("%w: %d bytes, want at most %d", ErrTooLarge, resp.ContentLength, f.limits.Packed)
	}
	sum := want.hash()
	n, err := io.Copy(io.MultiWriter(file, sum), io.LimitReader(resp.Body, f.limits.Packed+1))
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	if n > f.limits.Packed {
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, f.limits.Packed)
	}
	if got := want.text(sum); got != want.String() {
		return fmt.Errorf("%w: got %s, want %s", ErrDigest, got, want)
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}

package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/syncgate/syncgate/plugin/pin"
)

var errCredentials = errors.New("reading credentials")

// anonymousError remembers whether there were credentials to send.
type anonymousError struct {
	anonymous bool
	err       error
}

func (e *anonymousError) Error() string { return e.err.Error() }
func (e *anonymousError) Unwrap() error { return e.err }

// explain turns the error of a look-up into one of pin's classes with a text
// for people: no URL (its query may hold a token), no port of ours, nothing
// that a server wrote.
func (r *Resolver) explain(ctx context.Context, err error, tag name.Tag, host string) error {
	asked := canonicalHost(tag.RegistryStr())
	where := asked
	if asked != host {
		where = fmt.Sprintf("%s (mirror of %s)", asked, host)
	}
	if errors.Is(err, pin.ErrBadAnswer) {
		return fmt.Errorf("%s: %w", where, err)
	}
	if errors.Is(err, errCredentials) {
		return fmt.Errorf("%s: %w: the credentials of the Docker configuration cannot be read (see DOCKER_CONFIG and its credential helper)", where, pin.ErrUnauthorized)
	}
	var status *transport.Error
	if errors.As(err, &status) {
		return r.explainStatus(status.StatusCode, err, where, tag)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", where, ctx.Err())
	}
	return fmt.Errorf("%s: %w: %s", where, pin.ErrUnavailable, r.cause(err))
}

func (r *Resolver) explainStatus(code int, err error, where string, tag name.Tag) error {
	switch code {
	case http.StatusNotFound:
		return fmt.Errorf("%s: %w: repository %q has no tag %q", where, pin.ErrNotFound, tag.RepositoryStr(), tag.TagStr())
	case http.StatusUnauthorized, http.StatusForbidden:
		tried := "the credentials of the Docker configuration were refused"
		var a *anonymousError
		if errors.As(err, &a) && a.anonymous {
			tried = "the Docker configuration (DOCKER_CONFIG) has no credentials for it"
		}
		return fmt.Errorf("%s: %w for repository %q (status %d): %s; imagePullSecrets of Pods are not used", where, pin.ErrUnauthorized, tag.RepositoryStr(), code, tried)
	case http.StatusTooManyRequests:
		return fmt.Errorf("%s: %w (status %d), also after retrying", where, pin.ErrRateLimited, code)
	}
	return fmt.Errorf("%s: %w: status %d", where, pin.ErrUnavailable, code)
}

// cause names the innermost reason.
func (r *Resolver) cause(err error) string {
	var dns *net.DNSError
	var errno syscall.Errno
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return fmt.Sprintf("no answer in time (%s for one reference)", r.timeout)
	case errors.As(err, &dns):
		return "its name does not resolve"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, errPlain):
		return errPlain.Error()
	}
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return fmt.Sprintf("%.200s", err.Error())
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

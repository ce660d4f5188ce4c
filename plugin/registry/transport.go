package registry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// errPlain refuses a request that would go out unencrypted.
var errPlain = errors.New("plain HTTP is allowed for loopback hosts and those that the configuration lists only")

// newTransport retries what may pass (429 as told, 5xx, hangs), and refuses
// plain HTTP for each request. Credentials are added above it, by
// go-containerregistry, to requests for the registry's own host and port and
// for the token service that it names, and to none that it redirects to.
func newTransport(base http.RoundTripper, plain map[string]bool, attempt, maxWait time.Duration, retries int) http.RoundTripper {
	c := retryablehttp.NewClient()
	c.Logger = nil
	c.HTTPClient = &http.Client{
		Transport: base,
		Timeout:   attempt,
		// Redirects are for the client above, whose every request passes guard.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.RetryMax = retries
	c.RetryWaitMin, c.RetryWaitMax = 100*time.Millisecond, 4*time.Second
	c.CheckRetry = func(ctx context.Context, resp *http.Response, err error) (bool, error) {
		return mayRetry(ctx, resp, err, maxWait)
	}
	c.Backoff = func(least, most time.Duration, n int, resp *http.Response) time.Duration {
		if d, ok := retryAfter(resp); ok {
			return d
		}
		return retryablehttp.DefaultBackoff(least, most, n, nil)
	}
	// The last response, not "giving up after 4 attempts": its status says why.
	c.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return &guard{plain: plain, next: &retryablehttp.RoundTripper{Client: c}}
}

func mayRetry(ctx context.Context, resp *http.Response, err error, maxWait time.Duration) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if err != nil {
		// A server of plain HTTP, an unknown name, a bad certificate: the same
		// again in a second.
		var dns *net.DNSError
		if errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, &dns) && dns.IsNotFound {
			return false, nil
		}
		return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
	}
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < 500 || resp.StatusCode == http.StatusNotImplemented {
		return false, nil
	}
	if d, ok := retryAfter(resp); ok {
		// A refusal now, which says why, is worth more than a sync that hangs.
		deadline, bounded := ctx.Deadline()
		if d > maxWait || bounded && d >= time.Until(deadline) {
			return false, nil
		}
	}
	return true, nil
}

// retryAfter returns what a response asks for, in seconds or as a date.
func retryAfter(resp *http.Response) (time.Duration, bool) {
	if resp == nil {
		return 0, false
	}
	text := resp.Header.Get("Retry-After")
	if text == "" {
		return 0, false
	}
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at)), true
	}
	return 0, false
}

// guard looks at each request before it is sent.
type guard struct {
	plain map[string]bool
	next  http.RoundTripper
}

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !g.plain[req.URL.Host] && !loopback(req.URL.Host) {
		return nil, errPlain
	}
	return g.next.RoundTrip(req)
}

// loopback reports whether a host, with or without port, is this machine.
func loopback(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

package harness

import (
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// Balancer is what a Service is to its clients: one address, behind which each
// new connection goes to the next of the backends that takes it. It passes bytes
// on and knows nothing of TLS. A client that keeps a connection, as the API
// server does, stays with its backend until one of them ends it (see Cut).
type Balancer struct {
	*Env
	// Address is "127.0.0.1:PORT", the same however often it closes and opens.
	Address string

	mu          sync.Mutex
	listener    net.Listener // nil while closed
	backends    []string
	next        int
	connections map[net.Conn]bool // of clients and backends
}

// dialPatience is for a backend on loopback that neither takes nor refuses.
const dialPatience = time.Second

// startBalancer opens a balancer that lasts as long as the test.
func startBalancer(e *Env, backends ...string) *Balancer {
	e.T.Helper()
	b := &Balancer{Env: e, Address: e.freeAddress(), backends: backends, connections: map[net.Conn]bool{}}
	b.Open()
	e.T.Cleanup(b.Close)
	return b
}

// URL is the address for a client of TLS.
func (b *Balancer) URL() string { return "https://" + b.Address }

// Close refuses new connections and cuts those that there are: nothing is alive
// behind the Service.
func (b *Balancer) Close() {
	b.mu.Lock()
	if b.listener != nil {
		_ = b.listener.Close() // it only refuses from now on
		b.listener = nil
	}
	b.mu.Unlock()
	b.Cut()
}

// Open is there again, at the same address.
func (b *Balancer) Open() {
	b.T.Helper()
	listener, err := net.Listen("tcp", b.Address)
	if err != nil {
		b.T.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listener = listener
	go b.accept(listener)
}

// Cut ends the connections that there are, so that the clients' next ones go
// round the backends.
func (b *Balancer) Cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.connections {
		_ = c.Close() // its copier ends and forgets it
	}
}

// Route sends new connections to other backends ("127.0.0.1:PORT").
func (b *Balancer) Route(backends ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = slices.Clone(backends)
}

func (b *Balancer) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // closed
		}
		go b.serve(client)
	}
}

func (b *Balancer) serve(client net.Conn) {
	backend := b.dial()
	if backend == nil {
		_ = client.Close()
		return
	}
	b.mu.Lock()
	open := b.listener != nil
	b.connections[client], b.connections[backend] = true, true
	b.mu.Unlock()
	if open { // not closed since it was accepted
		var both sync.WaitGroup
		both.Go(func() { pass(backend, client) })
		both.Go(func() { pass(client, backend) })
		both.Wait()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range []net.Conn{client, backend} {
		_ = c.Close()
		delete(b.connections, c)
	}
}

// pass copies until from ends, and tells to. An error ends both directions, as a
// reset connection does.
func pass(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = from.Close()
		_ = to.Close()
		return
	}
	if t, ok := to.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
}

// dial connects to the next backend that takes it, or returns nil.
func (b *Balancer) dial() net.Conn {
	b.mu.Lock()
	backends, first := slices.Clone(b.backends), b.next
	b.next++
	b.mu.Unlock()
	for i := range backends {
		conn, err := net.DialTimeout("tcp", backends[(first+i)%len(backends)], dialPatience)
		if err == nil {
			return conn
		}
	}
	return nil
}

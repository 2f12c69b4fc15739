package peer

import (
	"net"

	"bellwether/internal/ensemble"
)

// The observer master port is a second port of links: a follower accepts observers on it, and an
// observer dials it. It is the same port on all servers, at the hosts of their quorum
// addresses. Links that were accepted on it have a shorter queue, because there can be many.

// observerPort is the name of the port in zoo.cfg.
const observerPort = "observer master"

// observerAddresses returns the addresses at which a server accepts observers.
func (l *Links) observerAddresses(id ensemble.ServerID) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := func(a ensemble.Address) string {
		return ensemble.HostPort{Host: a.Host, Port: l.o.ObserverPort}.String()
	}
	return addresses(id, at, l.memberships)
}

func (l *Links) ownObserver() []string { return local(l.observerAddresses(l.o.ID), l.o.ListenOnAll) }

// ListenObservers opens the observer master port. It does nothing if the port is open.
func (l *Links) ListenObservers() error {
	return l.listen(&l.observers, observerPort, l.ownObserver, func(c net.Conn) {
		l.handshakes.add(c, func(c net.Conn) bool { return l.welcome(c, l.o.ObserverQueueMax) })
	})
}

// UnlistenObservers closes the observer master port. Open links remain.
func (l *Links) UnlistenObservers() { l.unlisten(&l.observers) }

// DialMaster is Dial for the observer master port of a server.
func (l *Links) DialMaster(id ensemble.ServerID) {
	l.dialLater(target{id, func() []string { return l.observerAddresses(id) }})
}

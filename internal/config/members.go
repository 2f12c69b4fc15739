package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"bellwether/internal/ensemble"
)

// idExtendedMax is the largest server id with extended types: larger values in that byte
// of a znode's owner mark a TTL.
const idExtendedMax = 254

// loadMembers reads the servers, from zoo.cfg or the dynamic file, then myid, and sets
// the settings that depend on them.
func (l *loader) loadMembers() {
	version := int64(0)
	if file := l.c.Ensemble.DynamicFile; file != "" {
		if version = l.readDynamic(file); len(l.errs) > 0 {
			return
		}
	}
	if len(l.members) > 0 {
		m, err := ensemble.FromProperties(l.members)
		if err != nil {
			l.failMember(err)
			return
		}
		l.c.Ensemble.Members = m.WithVersion(version)
	}
	l.readID()
	if len(l.errs) == 0 {
		l.checkMembers()
	}
	if len(l.errs) == 0 {
		l.settleSelf()
	}
	if len(l.errs) == 0 {
		l.loadPriorities()
	}
	if len(l.errs) == 0 && !l.c.Standalone() {
		l.checkPorts()
	}
}

// checkPorts refuses an address that two servers share, and a port that this server would
// open twice.
func (l *loader) checkPorts() {
	servers := l.c.Ensemble.Members.Servers()
	owner := map[string]ensemble.ServerID{}
	for _, s := range servers {
		for _, a := range s.Addresses {
			for _, address := range []string{a.Quorum(), a.Election()} {
				if (ensemble.HostPort{Host: a.Host}).IsWildcard() {
					continue // the two addresses may be on different machines
				}
				if other, taken := owner[address]; taken && other != s.ID {
					l.failServer(s.ID, fmt.Sprintf("has the address %s of server.%d", address, other), "give each server a host or ports of its own")
				}
				owner[address] = s.ID
			}
		}
	}
	if self, ok := l.c.Ensemble.Members.Server(l.c.Ensemble.ID); ok {
		for _, a := range self.Addresses {
			l.checkOwnPorts(self.ID, a, l.c.Client, "client port")
			l.checkOwnPorts(self.ID, a, l.c.TLS.Client, "secure client port")
			if masters := l.c.Ensemble.ObserverMasterPort; masters > 0 {
				at := ensemble.HostPort{Host: a.Host, Port: masters}
				l.checkOwnPorts(self.ID, a, at, "observer master port")
				l.checkSamePort(self.ID, l.c.Client, at)
				l.checkSamePort(self.ID, l.c.TLS.Client, at)
			}
		}
	}
}

// checkOwnPorts compares a client port with one address of this server.
func (l *loader) checkOwnPorts(id ensemble.ServerID, a ensemble.Address, client ensemble.HostPort, what string) {
	other := ensemble.HostPort{Host: a.Host}
	if client.Port == 0 || !l.meet(client, other) {
		return
	}
	for port, name := range map[int]string{a.QuorumPort: "quorum", a.ElectionPort: "election"} {
		if port == client.Port {
			l.failServer(id, fmt.Sprintf("uses port %d both as the %s and as the %s port", port, what, name), "give this server three different ports")
		}
	}
}

// meet reports whether two ports of this server with the same number exclude each other.
func (l *loader) meet(client, other ensemble.HostPort) bool {
	return client.IsWildcard() || other.IsWildcard() || l.c.Ensemble.ListenOnAllIPs || strings.EqualFold(client.Host, other.Host)
}

// checkSamePort refuses a client port that is the observer master port.
func (l *loader) checkSamePort(id ensemble.ServerID, client, masters ensemble.HostPort) {
	if client.Port == masters.Port && l.meet(client, masters) {
		l.failServer(id, fmt.Sprintf("uses port %d both as a client port and as the observer master port", client.Port), "give this server another observerMasterPort")
	}
}

// memberFile returns the file that contains the server lines.
func (l *loader) memberFile() string {
	if f := l.c.Ensemble.DynamicFile; f != "" {
		return f
	}
	return l.c.File
}

// memberLine returns the line of the first member, or 0 if there is none.
func (l *loader) memberLine() int {
	if len(l.members) == 0 {
		return 0
	}
	return l.members[0].Line
}

// readDynamic replaces the members by those of the dynamic file. It returns their
// version, which is part of the file's name.
func (l *loader) readDynamic(file string) int64 {
	if len(l.members) > 0 {
		p := l.members[0]
		e := l.fail(l.c.File, p.Line, p.Key, "must be in the dynamic configuration file")
		e.Remedy = "move it to " + file + " or remove dynamicConfigFile"
		return 0
	}
	props, err := readProperties(file)
	if bad := (*Error)(nil); errors.As(err, &bad) {
		l.errs = append(l.errs, bad)
		return 0
	}
	if err != nil {
		l.failKey("dynamicConfigFile", "cannot be read: "+err.Error(), "name an existing file, or move its server lines here and remove the key")
		return 0
	}
	for _, p := range props {
		if !ensemble.IsMemberKey(p.Key) {
			e := l.fail(file, p.Line, p.Key, "is not allowed in a dynamic configuration file")
			e.Value = p.Value
			e.Allowed = "server.N, group.N and weight.N"
			e.Remedy = "move it to " + l.c.File
			if p.Key == "version" {
				e.Remedy = "remove it: the version is the hexadecimal suffix of the file's name"
			}
			return 0
		}
	}
	l.members = props
	return ensemble.FileVersion(file)
}

// failMember records an error in the server lines.
func (l *loader) failMember(err error) {
	var bad *ensemble.KeyError
	if !errors.As(err, &bad) {
		bad = &ensemble.KeyError{Reason: err.Error()}
	}
	if bad.Key == "" {
		l.fail(l.memberFile(), l.memberLine(), "", bad.Reason).Remedy = "correct the server, group and weight lines"
		return
	}
	e := l.fail(l.memberFile(), bad.Line, bad.Key, "is not allowed: "+bad.Reason)
	e.Value = bad.Value
	e.Remedy = "correct the line"
}

// idFile is the name of the file in dataDir that contains this server's id.
const idFile = "myid"

// noID is the number in myid that ZooKeeper treats like a missing file.
const noID = -1

// readID reads myid. Without the file the server has no id. Only an ensemble needs one: a
// standalone server starts with any number in the file.
func (l *loader) readID() {
	file := filepath.Join(l.c.DataDir, idFile)
	text, err := readFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		l.fail(file, 0, "", "cannot be read: "+err.Error()).Remedy = "make it a readable file with the id of this server"
		return
	}
	line, _, _ := strings.Cut(strings.ReplaceAll(string(text), "\r", "\n"), "\n")
	id, err := strconv.ParseInt(line, 10, 64)
	if err != nil || id < 0 && !l.c.Standalone() {
		e := l.fail(file, 1, strconv.Quote(clip(line)), "is not a server id")
		e.Allowed = "a decimal number of 0 or more as the whole first line, without blanks"
		e.Remedy = "write the number of this server's server.N line"
		return
	}
	if id == noID {
		return
	}
	l.c.Ensemble.ID, l.c.Ensemble.HasID = ensemble.ServerID(id), true
	if l.c.Tree.ExtendedTypes && id > idExtendedMax && !l.c.Standalone() {
		l.failKey("extendedTypesEnabled", fmt.Sprintf("needs a server id of at most %d, but %s contains %d", idExtendedMax, file, id),
			"change the id of this server or remove extendedTypesEnabled")
	}
}

// checkMembers checks the membership against the other settings.
func (l *loader) checkMembers() {
	m := l.c.Ensemble.Members
	voters := 0
	if m != nil {
		voters = len(m.Voters())
		for _, s := range m.Servers() {
			if len(s.Addresses) > 1 && !l.c.Ensemble.MultiAddress {
				l.failServer(s.ID, "has several addresses, but multiAddress.enabled is not true", "add a line multiAddress.enabled=true, or give one address")
			}
		}
	}
	alone := voters <= 1 && l.c.Ensemble.StandaloneEnabled
	switch {
	case voters == 0 && !l.c.Ensemble.StandaloneEnabled:
		l.failKey("standaloneEnabled", "is false, but there is no participant", "add a line server.1=HOST:2888:3888;2181 for each server, or set standaloneEnabled=true")
	case alone && m != nil && len(m.Servers()) > voters:
		l.fail(l.memberFile(), l.memberLine(), l.members[0].Key, "names observers, but there are fewer than two participants").Remedy = "add participants or remove the observers"
	case !alone:
		l.checkQuorum(m)
	}
}

// failServer records an error at the line of a server.
func (l *loader) failServer(id ensemble.ServerID, problem, remedy string) {
	key, line := "server."+strconv.FormatInt(int64(id), 10), 0
	for _, p := range l.members {
		if p.Key == key {
			line = p.Line
		}
	}
	l.fail(l.memberFile(), line, key, problem).Remedy = remedy
}

// checkQuorum checks the settings that a member of an ensemble needs.
func (l *loader) checkQuorum(m *ensemble.Membership) {
	c := &l.c.Ensemble
	if c.InitLimit == 0 {
		l.failKey("initLimit", "is not set, but an ensemble needs it", "add a line initLimit=10")
	}
	if c.SyncLimit == 0 {
		l.failKey("syncLimit", "is not set, but an ensemble needs it", "add a line syncLimit=5")
	}
	l.checkLimit("initLimit", c.InitLimit)
	l.checkLimit("syncLimit", c.SyncLimit)
	file := filepath.Join(l.c.DataDir, idFile)
	if !c.HasID {
		l.fail(file, 0, "", "is missing, but an ensemble needs it").Remedy = "write the number of this server's server.N line into it"
	} else if _, ok := m.Server(c.ID); !ok {
		l.fail(file, 1, "", fmt.Sprintf("contains %d, but there is no line server.%d", c.ID, c.ID)).Remedy = "correct myid or add the line"
	}
}

// checkLimit refuses a number of ticks that together are longer than timeMax.
func (l *loader) checkLimit(name string, ticks int) {
	tick := l.c.TickTime.Milliseconds()
	if most := timeMax.Milliseconds() / tick; int64(ticks) > most {
		l.failKey(name, fmt.Sprintf("is %d ms with a tickTime of %d ms, but at most %d ms are possible", int64(ticks)*tick, tick, timeMax.Milliseconds()),
			fmt.Sprintf("set it to at most %d, or lower tickTime", most))
	}
}

// settleSelf applies the settings in this server's own server line.
func (l *loader) settleSelf() {
	if l.c.Ensemble.Members == nil || !l.c.Ensemble.HasID {
		return
	}
	self, ok := l.c.Ensemble.Members.Server(l.c.Ensemble.ID)
	if !ok {
		return
	}
	if v, given := l.settings["peerType"]; given && l.c.Ensemble.PeerType != self.Role {
		l.warning(v.file, v.line, v.name, "is "+v.value+", but the server line says "+self.Role.String()+", which takes precedence")
	}
	l.c.Ensemble.PeerType = self.Role
	if !l.c.Standalone() {
		l.noticeIf(l.c.ReadUncommitted && !l.c.ReadOnlyMode, "readonlymode.uncommitted", "has no effect without readonlymode.enabled=true")
	}
	if self.Client.IsZero() {
		return
	}
	if own := l.c.Client; !own.IsZero() && !l.sameClient(own, self.Client) {
		l.failKey("clientPort", fmt.Sprintf("gives the client address %v, but the line server.%d gives %v", own, self.ID, self.Client),
			"keep one of the two, or make them equal")
		return
	}
	l.c.Client = self.Client
}

// sameClient reports whether the client addresses of zoo.cfg and of the server line agree.
// A wildcard in zoo.cfg agrees with any address. Names are not resolved: if one address is
// a name, equal ports are enough, and a warning says so.
func (l *loader) sameClient(own, line ensemble.HostPort) bool {
	if own.Port != line.Port {
		return false
	}
	if own.IsWildcard() || strings.EqualFold(own.Host, line.Host) {
		return true
	}
	a, errA := netip.ParseAddr(own.Host)
	b, errB := netip.ParseAddr(line.Host)
	if errA == nil && errB == nil {
		return a == b
	}
	l.warnIf(true, "clientPortAddress", fmt.Sprintf("is %s, but the server line says %s, which is used", own.Host, line.Host))
	return true
}

package realpeers

import (
	"fmt"
	"slices"
	"strings"

	"bellwether/internal/ensemble"
	"bellwether/internal/sim"
	"bellwether/interop/target"
)

// prepare writes ZooKeeper's configuration, and reserves the addresses of all servers.
func (r *replay) prepare(dir string) {
	kinds := slices.Repeat([]target.Kind{target.Apache}, sim.RecordedServers)
	e, err := target.NewEnsemble(dir, target.EnsembleOptions{
		Kinds: kinds, Extra: map[string]string{
			"tickTime":          fmt.Sprint(sim.RecordedTickMS),
			"initLimit":         fmt.Sprint(initLimit),
			"syncLimit":         fmt.Sprint(syncLimit),
			"maxSessionTimeout": fmt.Sprint(sim.RecordedSessionMS),
		},
		Properties: []string{"zookeeper.fastleader.maxNotificationInterval=1000", "zookeeper.cnxTimeout=60000"},
	})
	r.must(err)
	r.z = e.Servers[r.rec.Compatible-1]
	for i := range e.Servers {
		id := ensemble.ServerID(i + 1)
		quorum, election := e.Ports(i)
		if id == r.rec.Compatible {
			r.ports = [2]string{quorum, election}
			continue
		}
		r.peers[id] = &peer{wires: r.wires, id: id, zooKeeper: r.rec.Compatible, quorum: quorum, elections: election}
		r.t.Cleanup(r.peers[id].stop)
	}
	for _, p := range r.peers {
		p.toElections = r.ports[1]
	}
	r.configs = addressesOf(r.rec, e)
}

// addressesOf replaces simulated addresses in configurations by those of an ensemble.
func addressesOf(rec *sim.Recording, e *target.Ensemble) *strings.Replacer {
	var pairs []string
	for _, x := range rec.Exchanges {
		if x.Notification == nil {
			continue
		}
		for line := range strings.Lines(x.Notification.Config) {
			line = strings.TrimSpace(line)
			for i := range e.Servers {
				if key := fmt.Sprintf("server.%d=", i+1); strings.HasPrefix(line, key) {
					quorum, election := e.Ports(i)
					_, port, _ := strings.Cut(election, ":")
					pairs = append(pairs, line, fmt.Sprintf("%s%s:%s:participant", key, quorum, port))
				}
			}
		}
		if len(pairs) > 0 {
			break
		}
	}
	return strings.NewReplacer(pairs...)
}

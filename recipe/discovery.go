package recipe

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bellwether/internal/claim"
	"bellwether/zk"
)

// Instance is one instance of a service, in the form of Curator's service discovery.
type Instance struct {
	Name    string // of the service
	ID      string // unique for the service
	Address string
	Port    int // 0: none
	SSLPort int // 0: none
	// Payload is any JSON. Curator reads objects by the class in their "@class".
	Payload    json.RawMessage
	Registered time.Time // zero: when it is registered
	// URI describes how to make an URI of the instance; kept as Curator has it.
	URI      *URISpec
	Disabled bool // is not picked
}

// URISpec is Curator's UriSpec.
type URISpec struct {
	Parts []URIPart `json:"parts"`
}

// URIPart is a literal, or a variable such as scheme, address or port.
type URIPart struct {
	Value    string `json:"value"`
	Variable bool   `json:"variable"`
}

// instanceJSON is Curator's layout.
type instanceJSON struct {
	Name                string          `json:"name"`
	ID                  string          `json:"id"`
	Address             string          `json:"address"`
	Port                *int            `json:"port"`
	SSLPort             *int            `json:"sslPort"`
	Payload             json.RawMessage `json:"payload"`
	RegistrationTimeUTC int64           `json:"registrationTimeUTC"`
	ServiceType         string          `json:"serviceType"`
	URISpec             *URISpec        `json:"uriSpec"`
	Enabled             *bool           `json:"enabled"` // nil before Curator 2.12: yes
}

// serviceDynamic is the type of what goes with its session.
const serviceDynamic = "DYNAMIC"

// MarshalJSON writes the instance as Curator does.
func (i Instance) MarshalJSON() ([]byte, error) {
	enabled := !i.Disabled
	j := instanceJSON{Name: i.Name, ID: i.ID, Address: i.Address, Payload: i.Payload, RegistrationTimeUTC: i.Registered.UnixMilli(),
		ServiceType: serviceDynamic, URISpec: i.URI, Enabled: &enabled}
	if i.Port != 0 {
		j.Port = &i.Port
	}
	if i.SSLPort != 0 {
		j.SSLPort = &i.SSLPort
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads what Curator wrote, of any version and service type.
func (i *Instance) UnmarshalJSON(data []byte) error {
	var j instanceJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*i = Instance{Name: j.Name, ID: j.ID, Address: j.Address, Payload: j.Payload,
		Registered: time.UnixMilli(j.RegistrationTimeUTC).UTC(), URI: j.URISpec, Disabled: j.Enabled != nil && !*j.Enabled}
	if j.Port != nil {
		i.Port = *j.Port
	}
	if j.SSLPort != nil {
		i.SSLPort = *j.SSLPort
	}
	return nil
}

// Discovery registers instances of services, and finds them.
type Discovery struct {
	c    *zk.Client
	base string
	opt  RegistrationOptions
}

// NewDiscovery prepares a Discovery of the services below base, which is Curator's
// basePath. The options are those of the instances registered; nil means all defaults.
// The caller still owns the client.
func NewDiscovery(c *zk.Client, base string, o *RegistrationOptions) (*Discovery, error) {
	d := &Discovery{c: c, base: base}
	if o != nil {
		d.opt = *o
	}
	return d, checkPath("discovery", base)
}

// Register publishes an instance until the Registration is closed. If the instance has
// no ID, it gets one.
func (d *Discovery) Register(ctx context.Context, i Instance) (*Registration, error) {
	if i.ID == "" {
		i.ID = nonce()
	}
	if err := errors.Join(checkName("discovery "+d.base, i.Name), checkName("discovery "+d.base, i.ID)); err != nil {
		return nil, err
	}
	if i.Registered.IsZero() {
		i.Registered = time.Now()
	}
	data, err := json.Marshal(i)
	if err != nil {
		return nil, err
	}
	return Register(ctx, d.c, claim.Join(claim.Join(d.base, i.Name), i.ID), data, &d.opt)
}

// Names returns the services that have been registered, in order.
func (d *Discovery) Names(ctx context.Context) ([]string, error) {
	names, _, err := d.c.Children(ctx, d.base)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	slices.Sort(names)
	return names, err
}

// Strategy chooses one of n, which is at least 1, and returns its index below n. The
// function rand.IntN is one.
type Strategy func(n int) int

// RoundRobin returns a Strategy that chooses each in turn.
func RoundRobin() Strategy {
	var last atomic.Uint64
	return func(n int) int { return int((last.Add(1) - 1) % uint64(n)) }
}

// Provider knows the instances of one service from a Cache, so looking one up asks no
// server. Its methods may be called from any goroutine.
type Provider struct {
	cache *Cache
	pick  Strategy

	mu   sync.Mutex
	seen int // revision of the cache
	all  []Instance
	open []Instance // those that are not disabled
}

// Provider opens a Provider of the service with this name, which need not exist yet. A
// nil strategy means RoundRobin.
func (d *Discovery) Provider(ctx context.Context, name string, pick Strategy) (*Provider, error) {
	if err := checkName("discovery "+d.base, name); err != nil {
		return nil, err
	}
	k, err := OpenCache(ctx, d.c, claim.Join(d.base, name), &CacheOptions{ChildrenOnly: true, Logger: d.opt.Logger, Observer: d.opt.Observer})
	if err != nil {
		return nil, err
	}
	if pick == nil {
		pick = RoundRobin()
	}
	return &Provider{cache: k, pick: pick, seen: -1}, nil
}

// Pick returns an instance chosen by the strategy, or false if there is none. An
// instance that has just ended may be returned: try another one then.
func (p *Provider) Pick() (Instance, bool) {
	p.mu.Lock()
	p.refresh()
	open := p.open
	p.mu.Unlock()
	if len(open) == 0 {
		return Instance{}, false
	}
	return open[p.pick(len(open))], true
}

// All returns the present instances in the order of their IDs, disabled ones included.
// It leaves out those that it cannot read.
func (p *Provider) All() []Instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	return slices.Clone(p.all)
}

// refresh reads the instances again if the Cache has changed. Provider.mu is held.
func (p *Provider) refresh() {
	now := p.cache.revision()
	if now == p.seen {
		return
	}
	p.seen, p.all, p.open = now, nil, nil
	for n := range p.cache.All() {
		var i Instance
		if n.Path == p.cache.path || json.Unmarshal(n.Data, &i) != nil {
			continue
		}
		p.all = append(p.all, i)
		if !i.Disabled {
			p.open = append(p.open, i)
		}
	}
}

// Cache returns the Cache from which the Provider knows its instances, for its events
// and Stale.
func (p *Provider) Cache() *Cache { return p.cache }

// Close ends the Provider.
func (p *Provider) Close() { p.cache.Close() }

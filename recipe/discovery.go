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
	Name    string // name of the service
	ID      string // unique among the instances of the service
	Address string
	Port    int // 0: none
	SSLPort int // 0: none
	// Payload is any JSON value. Curator decodes an object as the Java class that its field "@class" names.
	Payload    json.RawMessage
	Registered time.Time // zero: Register sets the current time
	// URI describes how to build a URI of the instance, in Curator's form.
	URI      *URISpec
	Disabled bool // Provider.Pick does not return it
}

// URISpec is Curator's UriSpec: the parts of which a URI is built.
type URISpec struct {
	Parts []URIPart `json:"parts"`
}

// URIPart is a literal part of a URI, or a variable such as scheme, address or port.
type URIPart struct {
	Value    string `json:"value"`
	Variable bool   `json:"variable"`
}

// instanceJSON is an instance in the JSON layout of Curator.
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
	Enabled             *bool           `json:"enabled"` // nil, as before Curator 2.12, means enabled
}

// serviceDynamic is Curator's service type for instances that end with their session.
const serviceDynamic = "DYNAMIC"

// MarshalJSON encodes the instance in Curator's layout.
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

// UnmarshalJSON decodes an instance that any version of Curator wrote, of any service type.
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

// Discovery registers instances of services and finds them.
type Discovery struct {
	c    *zk.Client
	base string
	opt  RegistrationOptions
}

// NewDiscovery prepares a Discovery of the services below base, which is Curator's
// basePath. The options apply to the instances that it registers; nil means all defaults.
// The caller still owns the client.
func NewDiscovery(c *zk.Client, base string, o *RegistrationOptions) (*Discovery, error) {
	d := &Discovery{c: c, base: base, opt: optionsOr(o)}
	return d, checkClient("discovery", c, base)
}

// Register publishes an instance until the returned Registration is closed. If the instance has
// no ID, Register gives it one.
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

// Names returns the sorted names of all services that have ever been registered.
func (d *Discovery) Names(ctx context.Context) ([]string, error) {
	names, _, err := d.c.Children(ctx, d.base)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	slices.Sort(names)
	return names, err
}

// Strategy chooses one of n instances, n being at least 1, and returns its index below n. The
// function rand.IntN is a Strategy.
type Strategy func(n int) int

// RoundRobin returns a Strategy that chooses the instances in turn.
func RoundRobin() Strategy {
	var last atomic.Uint64
	return func(n int) int { return int((last.Add(1) - 1) % uint64(n)) }
}

// Provider finds the instances of one service. It reads them from a Cache, so a lookup sends no
// request to a server. Its methods may be called from any goroutine.
//
// Invariant: all and open hold the instances of the Cache at revision seen.
type Provider struct {
	cache *Cache
	pick  Strategy

	mu   sync.Mutex
	seen int // revision of the Cache from which all and open were read; -1 before the first read
	all  []Instance
	open []Instance // the instances that are not disabled
}

// Provider opens a Provider of the service with this name. The service need not exist yet. A
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

// Pick returns an instance chosen by the strategy, or false if there is none. The
// instance may have just ended; the caller should then pick another one.
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
// It leaves out znodes that do not hold an instance.
func (p *Provider) All() []Instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	return slices.Clone(p.all)
}

// refresh reads the instances from the Cache again if the Cache has changed. Provider.mu is held.
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

// Cache returns the Cache from which the Provider reads its instances. Use it for its events
// and for Stale.
func (p *Provider) Cache() *Cache { return p.cache }

// Close ends the Provider and its Cache.
func (p *Provider) Close() { p.cache.Close() }

package interop

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"bellwether/interop/target"
	"bellwether/recipe"
	"bellwether/zk"
)

// registryPath is the class path of Curator's service discovery.
const registryPath = curatorPath + ":/usr/share/java/curator-x-discovery.jar"

// registryWait bounds each wait of the tests in this file.
const registryWait = 3 * time.Minute

// TestRegistryWithCurator shows that Bellwether's Group and Discovery and Curator's GroupMember
// and ServiceDiscovery see each other's members and instances.
func TestRegistryWithCurator(t *testing.T) {
	javac := target.Tool(t, "javac", "default-jdk-headless")
	java := target.Tool(t, "java", "default-jdk-headless")
	target.File(t, "/usr/share/java/curator-x-discovery.jar", "libcurator-discovery-java")
	classes := t.TempDir()
	target.Script{
		Args: []string{javac, "-Xlint:unchecked,deprecation,rawtypes", "-Werror", "-proc:none", "-cp", registryPath, "-d", classes, "registry/Registry.java"},
	}.Pass(t)
	eachShared(t, func(t *testing.T, s *target.Server) {
		r := newRegistry(t, s, "registry-curator")
		r.join("group", recipe.MemberNames)
		d, err := recipe.NewDiscovery(r.c, r.prefix+"/services", nil)
		if err != nil {
			t.Fatal(err)
		}
		web, err := d.Register(r.ctx, recipe.Instance{Name: "web", ID: "go", Address: "go.example", Port: 8080})
		if err != nil {
			t.Fatal(err)
		}
		defer web.Close(r.ctx)
		p, err := d.Provider(r.ctx, "web", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		seen := func() error {
			defer r.release()
			if err := r.sees("group", recipe.MemberNames, "go", "java"); err != nil {
				return err
			}
			return r.until(p.Cache(), func() bool {
				all := p.All()
				return len(all) == 2 && all[1].ID == "java" && all[1].Port == 81 && all[1].SSLPort == 0 && !all[1].Disabled &&
					all[1].Address == "java.example" && time.Since(all[1].Registered) < time.Hour
			})
		}
		args := append([]string{java}, target.JVM...)
		target.Script{
			Args:     append(args, "-cp", classes+":"+registryPath, "Registry", s.Addr, r.prefix),
			Commands: map[string]func() error{"@seen": seen},
		}.Pass(t)
		if err := r.sees("group", recipe.MemberNames, "go"); err != nil {
			t.Errorf("after Curator's member has left: %v", err)
		}
	})
}

// TestRegistryWithKazoo shows that Bellwether's Group and kazoo's Party and ShallowParty share
// their members.
func TestRegistryWithKazoo(t *testing.T) {
	target.File(t, "/usr/lib/python3/dist-packages/kazoo/client.py", "python3-kazoo")
	eachShared(t, func(t *testing.T, s *target.Server) {
		r := newRegistry(t, s, "registry-kazoo")
		r.join("party", recipe.PartyNames)
		r.join("shallow", recipe.ShallowNames)
		seen := func() error {
			defer r.release()
			if err := r.sees("party", recipe.PartyNames, "go", "python"); err != nil {
				return err
			}
			return r.sees("shallow", recipe.ShallowNames, "go", "python")
		}
		target.Script{
			Args:     []string{debianPython, "-B", "registry/party.py", s.Addr, r.prefix},
			Commands: map[string]func() error{"@seen": seen},
		}.Pass(t)
	})
}

// TestRegistryCacheAfterACut shows on both servers that after a cut connection a cache reads
// what has changed, and that a registration exists again.
func TestRegistryCacheAfterACut(t *testing.T) {
	eachShared(t, func(t *testing.T, s *target.Server) {
		r := newRegistry(t, s, "registry-cache")
		way := target.NewProxy(t, s.Addr)
		c, err := zk.Connect(r.ctx, way.Addr, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(r.ctx)
		for i := range 100 {
			r.create(fmt.Sprintf("%s/n%03d", r.prefix, i))
		}
		k, err := recipe.OpenCache(r.ctx, c, r.prefix, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		reg, err := recipe.Register(r.ctx, c, r.prefix+"/me", []byte("me"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer reg.Close(r.ctx)
		way.Down()
		for s := reg.Status(); s.Standing == recipe.Stands; {
			if s, err = s.Next(r.ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.c.Set(r.ctx, r.prefix+"/n007", []byte("new"), 0); err != nil {
			t.Fatal(err)
		}
		if err := r.c.Delete(r.ctx, r.prefix+"/n008", 0); err != nil {
			t.Fatal(err)
		}
		r.create(r.prefix + "/n050/deep")
		way.Up()
		if err := r.until(k, func() bool {
			n, ok := k.Get(r.prefix + "/n007")
			_, gone := k.Get(r.prefix + "/n008")
			_, deep := k.Get(r.prefix + "/n050/deep")
			return ok && string(n.Data) == "new" && !gone && deep && k.Len() == 102
		}); err != nil {
			t.Error(err)
		}
		for s := reg.Status(); s.Standing != recipe.Stands; {
			if s, err = s.Next(r.ctx); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// registry is the state of one test on a server.
type registry struct {
	t      *testing.T
	ctx    context.Context
	c      *zk.Client
	prefix string
}

func newRegistry(t *testing.T, s *target.Server, name string) *registry {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), registryWait)
	t.Cleanup(cancel)
	c, err := zk.Connect(ctx, s.Addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(ctx) })
	r := &registry{t: t, ctx: ctx, c: c, prefix: fresh(name)}
	r.create(r.prefix)
	return r
}

func (r *registry) create(path string) {
	r.t.Helper()
	if _, _, err := r.c.Create(r.ctx, path, nil); err != nil {
		r.t.Fatal(err)
	}
}

// join adds a Bellwether member called go.
func (r *registry) join(group string, l recipe.GroupNaming) {
	r.t.Helper()
	g, err := recipe.NewGroup(r.c, r.prefix+"/"+group, &recipe.GroupOptions{Naming: l})
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := g.Join(r.ctx, "go", nil); err != nil {
		r.t.Fatal(err)
	}
}

// sees waits until the group has these members.
func (r *registry) sees(group string, l recipe.GroupNaming, want ...string) error {
	g, err := recipe.NewGroup(r.c, r.prefix+"/"+group, &recipe.GroupOptions{Naming: l})
	if err != nil {
		return err
	}
	for members, err := range g.Watch(r.ctx) {
		if err != nil {
			return fmt.Errorf("waiting for the members %v: %w", want, err)
		}
		ids := []string{}
		for _, m := range members {
			ids = append(ids, m.ID)
		}
		if slices.Equal(ids, want) {
			return nil
		}
	}
	return nil
}

// until waits for a condition of a cache.
func (r *registry) until(k *recipe.Cache, holds func() bool) error {
	for _, err := range k.Events(r.ctx) {
		if holds() {
			return nil
		}
		if err != nil {
			return fmt.Errorf("waiting for the cache: %w", err)
		}
	}
	return nil
}

// release makes the other program end.
func (r *registry) release() {
	if _, _, err := r.c.Create(r.ctx, r.prefix+"/release", nil); err != nil {
		r.t.Error(err)
	}
}

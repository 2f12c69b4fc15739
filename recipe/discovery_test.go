package recipe

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bellwether/zk"
)

// curatorInstance is the data that Curator 5.4 writes.
const curatorInstance = `{"name":"web","id":"2f0e","address":"10.0.0.9","port":8080,"sslPort":null,"payload":null,` +
	`"registrationTimeUTC":1325129459728,"serviceType":"DYNAMIC","uriSpec":{"parts":[{"value":"scheme","variable":true},` +
	`{"value":"://","variable":false}]},"enabled":true}`

// TestInstanceIsCurators checks that an instance is encoded exactly as Curator encodes it.
func TestInstanceIsCurators(t *testing.T) {
	var i Instance
	if err := json.Unmarshal([]byte(curatorInstance), &i); err != nil {
		t.Fatal(err)
	}
	if i.Name != "web" || i.Port != 8080 || i.SSLPort != 0 || i.Disabled || i.Registered.UnixMilli() != 1325129459728 || len(i.URI.Parts) != 2 {
		t.Errorf("read %+v", i)
	}
	got, err := json.Marshal(i)
	if err != nil || string(got) != curatorInstance {
		t.Errorf("written\n%s, %v; want\n%s", got, err, curatorInstance)
	}
	old := strings.Replace(curatorInstance, `,"enabled":true`, "", 1)
	if err := json.Unmarshal([]byte(old), &i); err != nil || i.Disabled {
		t.Errorf("of an older Curator: %+v, %v", i, err)
	}
}

// TestProviderFollowsItsInstances checks that the Provider follows changes, and that a lookup sends no
// request.
func TestProviderFollowsItsInstances(t *testing.T) {
	bubble(t, func(t *testing.T, s *fakeServer) {
		d := made(NewDiscovery(s.connect(zk.Options{}), "/app/services", nil))
		p, err := d.Provider(t.Context(), "web", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if _, ok := p.Pick(); ok {
			t.Error("picked one of none")
		}
		var last *Registration
		for _, id := range []string{"a", "b", "c"} {
			i := Instance{Name: "web", ID: id, Address: id + ".example", Port: 80, Disabled: id == "b"}
			if last, err = made(NewDiscovery(s.connect(zk.Options{}), "/app/services", nil)).Register(t.Context(), i); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		s.put("/app/services/web/junk", "{")
		synctest.Wait()
		before := s.asked()
		picks := ""
		for range 6 {
			i, _ := p.Pick()
			picks += i.ID
		}
		if picks != "acacac" || len(p.All()) != 3 || s.asked() != before {
			t.Errorf("picked %s of %d with %d requests", picks, len(p.All()), s.asked()-before)
		}
		if err := last.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if i, ok := p.Pick(); !ok || i.ID != "a" || time.Until(i.Registered) > 0 {
			t.Errorf("picked %+v, %v", i, ok)
		}
		names, err := d.Names(t.Context())
		if err != nil || len(names) != 1 || names[0] != "web" {
			t.Errorf("names %v, %v", names, err)
		}
		if _, err := d.Register(t.Context(), Instance{Name: "a/b"}); err == nil {
			t.Error("registered a/b")
		}
	})
}

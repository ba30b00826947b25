// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/restart/evict"
)

// schema holds the CRD's bounds of a value.
type schema struct {
	Properties map[string]*schema
	Items      *schema
	MaxLength  *int
	MaxItems   *int
	Minimum    *float64
	Maximum    *float64
}

func statusSchema(t *testing.T) *schema {
	t.Helper()
	text, err := os.ReadFile("../../../config/crd/bases/tidekeeper.dev_scheduledrestarts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema *schema }
			}
		}
	}{}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
}

// refusals lists the parts of a value that the API server would reject, with the reasons.
func (s *schema) refusals(path string, value any) (all []string) {
	refuse := func(format string, args ...any) { all = append(all, path+": "+fmt.Sprintf(format, args...)) }
	if s == nil {
		refuse("the schema does not have it")
		return all
	}
	switch v := value.(type) {
	case string:
		if n := utf8.RuneCountInString(v); s.MaxLength != nil && n > *s.MaxLength {
			refuse("%d characters, at most %d: %.60q", n, *s.MaxLength, v)
		}
	case float64:
		if s.Minimum != nil && v < *s.Minimum || s.Maximum != nil && v > *s.Maximum || math.Abs(v) > math.MaxInt32 {
			refuse("%v", v)
		}
	case []any:
		if s.MaxItems != nil && len(v) > *s.MaxItems {
			refuse("%d items", len(v))
		}
		for _, item := range v {
			all = append(all, s.Items.refusals(path+"[]", item)...)
		}
	case map[string]any:
		for name, field := range v {
			all = append(all, s.Properties[name].refusals(path+"."+name, field)...)
		}
	}
	return all
}

// scramble sets some strings, numbers and booleans in a value to arbitrary values, as if another
// program had written them.
func scramble(random *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scramble(random, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			scramble(random, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() && v.Type() != reflect.TypeFor[time.Time]() && v.Type() != reflect.TypeFor[metav1.LabelSelector]() {
				scramble(random, field)
			}
		}
	case reflect.String:
		if random.IntN(3) == 0 {
			units := []string{"x", "ß", "語", "\xff", "\x00", "𝄞 "}
			lengths := []int{1, 63, 500, 1020, 1024, 1025, 40_000}
			v.SetString(strings.Repeat(units[random.IntN(len(units))], lengths[random.IntN(len(lengths))]))
		}
	case reflect.Int32:
		if random.IntN(3) == 0 {
			v.SetInt(int64(int32(random.Uint32())))
		}
	case reflect.Bool:
		if random.IntN(4) == 0 {
			v.SetBool(random.IntN(2) == 0)
		}
	}
}

// drawStrange returns a random input with arbitrary values in the target, the freezes, the query
// answers and the evictions.
func drawStrange(random *rand.Rand) Input {
	one := func(choices ...func(*Input)) func(*Input) { return choices[random.IntN(len(choices))] }
	same := func(*Input) {}
	in := makeInputs(
		one(same, active, active),
		one(same, withTarget(sentTo), withTarget(complete)),
		one(same, withSpec(func(s *tidekeeperv1.ScheduledRestartSpec) { s.Method = tidekeeperv1.MethodEvict })),
		one(same, same, withSpec(suspended), edited(suspended), requestAt("03:00:00"), func(in *Input) { in.Target = nil }),
		one(same, func(in *Input) { in.Queried, in.Answer = true, &Answer{At: in.Now, Closed: "closed"} }),
		one(same, func(in *Input) {
			in.Freezes = []period.Period{{Name: "f", Reason: "r", From: in.Now.Add(-time.Hour), Until: in.Now.Add(time.Hour)}}
		}),
		one(same, func(in *Input) {
			in.Config, in.Restart.Spec.OnConfigChange = &Config{Hash: "h"}, tidekeeperv1.ConfigMapsOnly
		}, func(in *Input) {
			in.Config = &Config{Problem: tidekeeperv1.ReasonConfigNotWatched, Message: strings.Repeat("z", 5000)}
		}),
		one(same, func(in *Input) {
			in.Restart.Spec.After, in.After = []string{"first"}, []Predecessor{{Name: "first"}}
		}),
		one(same, func(in *Input) { in.Cycle = []string{"web", strings.Repeat("y", 253), "web"} }),
		one(same, func(in *Input) { in.Unreadable = "it cannot be read" }),
		one(now("03:00:01"), now("03:01:00"), now("03:16:00"), now("04:00:00")),
		one(same, noPods),
	)
	if status := &in.Restart.Status; status.Active != nil && random.IntN(2) == 0 {
		status.Active.Eviction = &tidekeeperv1.ActiveEviction{CreatedBefore: *metaAt("03:00:00")}
		in.Attempts = Attempts{Refusal: "refused", RefusedAt: in.Now, RefusedSince: in.Now}
	}
	for range random.IntN(2) * int(in.Restart.Spec.HistoryLimit) {
		in.Restart.Status.History = append(in.Restart.Status.History, tidekeeperv1.RestartRecord{Outcome: tidekeeperv1.OutcomeMissed, CompletedTime: *metaAt("02:00:00")})
	}
	for _, part := range []any{in.Target, in.Answer, &in.Freezes, &in.Attempts, &in.SendFailure, &in.Unreadable, &in.Polled, &in.Unserved} {
		if v := reflect.ValueOf(part); !v.IsNil() {
			scramble(random, v)
		}
	}
	if in.Target != nil && random.IntN(4) > 0 {
		in.Target.UID = "t"
	}
	return in
}

// decideStrange makes a decision, and provides random values for the facts that the decision needs.
func decideStrange(random *rand.Rand, in Input) Output {
	for {
		d := Decide(in)
		switch d.Needs {
		case NeedLiveTarget:
			in.Live = true
		case NeedRolledOut:
			in.RolledOut = new(random.IntN(2) == 0)
		case NeedPodStartups:
			in.PodStartups = []time.Duration{time.Duration(random.Int64()), -time.Hour}
		case NeedPodAges, NeedLivePodAges:
			in.PodAges = &PodAges{Oldest: in.Now.Add(-time.Hour), Live: true}
		case NeedPods:
			in.Pods = &Pods{Active: []evict.Pod{{Name: "a", Created: in.Now.Add(-time.Hour)}}}
		case NeedLiveConfig:
			in.Config.Live = true
		case NeedLiveFreezes:
			in.FreezesLive = true
		case NeedAnswer:
			in.Answer = &Answer{At: in.Now}
		default:
			return d
		}
	}
}

// TestNoStatusIsRefused checks that the API server accepts the status that any decision results in,
// regardless of the values in the target, a freeze, a query answer or a rejected eviction.
func TestNoStatusIsRefused(t *testing.T) {
	bounds := statusSchema(t)
	seen := map[string]bool{}
	for seed := range uint64(6_000) {
		random := rand.New(rand.NewPCG(seed, 0))
		d := decideStrange(random, drawStrange(random))
		text, err := json.Marshal(&d.Status)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		status := map[string]any{}
		if err := json.Unmarshal(text, &status); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, refusal := range bounds.refusals("status", status) {
			t.Errorf("seed %d: %s", seed, refusal)
		}
		if len(text) > 64<<10 {
			t.Errorf("seed %d: the status has %d bytes", seed, len(text))
		}
		for _, r := range d.Records {
			seen[string(r.Outcome)+r.Reason] = true
		}
		if t.Failed() && seed > 2000 {
			return
		}
	}
	if len(seen) < 12 {
		t.Errorf("there were only records with %d reasons: %v", len(seen), seen)
	}
}

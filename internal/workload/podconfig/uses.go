// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podconfig

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Kind is a kind of object with content for pods.
type Kind byte

// The kinds.
const (
	ConfigMap Kind = 'c'
	Secret    Kind = 's'
)

// String returns the name of the kind.
func (k Kind) String() string {
	if k == Secret {
		return "Secret"
	}
	return "ConfigMap"
}

// Use is the use of a ConfigMap or Secret by a pod template in the same namespace.
type Use struct {
	Kind Kind
	Name string
	// Keys are the used keys, sorted; nil means all keys.
	Keys []string
	// Required is set if pods do not start without the object, and RequiredKeys are the keys, sorted,
	// without which they do not start.
	Required     bool
	RequiredKeys []string
}

// MaxUses is the maximum number of ConfigMaps and Secrets that a template may use, and
// maxEncoded the maximum length of the text of [Encode] in bytes, which is kept for each
// workload.
const (
	MaxUses    = 100
	maxEncoded = 16 << 10
)

// The marks in that text: tooMany for a template beyond these limits, requiredMark after a key without which
// pods do not start, and allKeys before such keys of an object that is used as a whole.
const (
	tooMany      = "!"
	requiredMark = "!"
	allKeys      = "*"
)

// possible matches all names and keys that objects can have, and some others.
var possible = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)

type object struct {
	kind Kind
	name string
}

// used is the part of an object that a template uses.
type used struct {
	// all is set if all keys are used, and required if pods do not start without the object.
	all, required bool
	// keys are the keys that are used by name. A key is true if pods do not start without it.
	keys map[string]bool
}

// collector has the objects that a template uses.
type collector map[object]*used

// of returns the used part of an object, to be extended.
func (c collector) of(kind Kind, name string, optional *bool) *used {
	o := object{kind, name}
	if c[o] == nil {
		c[o] = &used{keys: map[string]bool{}}
	}
	c[o].required = c[o].required || !ptr.Deref(optional, false)
	return c[o]
}

func (c collector) all(kind Kind, name string, optional *bool) {
	if possible.MatchString(name) {
		c.of(kind, name, optional).all = true
	}
}

func (c collector) key(kind Kind, name, key string, optional *bool) {
	if possible.MatchString(name) && possible.MatchString(key) {
		u := c.of(kind, name, optional)
		u.keys[key] = u.keys[key] || !ptr.Deref(optional, false)
	}
}

func (c collector) items(kind Kind, name string, items []corev1.KeyToPath, optional *bool) {
	if len(items) == 0 {
		c.all(kind, name, optional)
	}
	for _, item := range items {
		c.key(kind, name, item.Key, optional)
	}
}

func (c collector) containers(containers []corev1.Container) {
	for i := range containers {
		for _, from := range containers[i].EnvFrom {
			if ref := from.ConfigMapRef; ref != nil {
				c.all(ConfigMap, ref.Name, ref.Optional)
			}
			if ref := from.SecretRef; ref != nil {
				c.all(Secret, ref.Name, ref.Optional)
			}
		}
		for _, env := range containers[i].Env {
			if env.ValueFrom == nil {
				continue
			}
			if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
				c.key(ConfigMap, ref.Name, ref.Key, ref.Optional)
			}
			if ref := env.ValueFrom.SecretKeyRef; ref != nil {
				c.key(Secret, ref.Name, ref.Key, ref.Optional)
			}
		}
	}
}

func (c collector) volumes(volumes []corev1.Volume) {
	for i := range volumes {
		if v := volumes[i].ConfigMap; v != nil {
			c.items(ConfigMap, v.Name, v.Items, v.Optional)
		}
		if v := volumes[i].Secret; v != nil {
			c.items(Secret, v.SecretName, v.Items, v.Optional)
		}
		if volumes[i].Projected == nil {
			continue
		}
		for _, source := range volumes[i].Projected.Sources {
			if v := source.ConfigMap; v != nil {
				c.items(ConfigMap, v.Name, v.Items, v.Optional)
			}
			if v := source.Secret; v != nil {
				c.items(Secret, v.Name, v.Items, v.Optional)
			}
		}
	}
}

// Uses returns the ConfigMaps and Secrets that a pod template uses as environment or files,
// sorted. An object that is used as a whole anywhere counts with all keys. Optional objects are
// included: a missing object has no content. Impossible names are left out.
func Uses(spec *corev1.PodSpec) []Use {
	c := collector{}
	c.containers(spec.InitContainers)
	c.containers(spec.Containers)
	c.volumes(spec.Volumes)
	uses := make([]Use, 0, len(c))
	for o, u := range c {
		use := Use{Kind: o.kind, Name: o.name, Required: u.required}
		for _, key := range slices.Sorted(maps.Keys(u.keys)) {
			if !u.all {
				use.Keys = append(use.Keys, key)
			}
			if u.keys[key] {
				use.RequiredKeys = append(use.RequiredKeys, key)
			}
		}
		uses = append(uses, use)
	}
	slices.SortFunc(uses, func(a, b Use) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return uses
}

// Encode returns the uses of a pod template as a short text: "c/name" for all keys of a
// ConfigMap, "s/name/key,key" for single keys of a Secret, separated by spaces; and "!" if the
// text would be too long to keep. A kind in upper case is an object that pods need to start, and
// "key!" such a key, also after "*", which stands for all keys: "S/name/*,key!".
func Encode(spec *corev1.PodSpec) string {
	uses := Uses(spec)
	if len(uses) > MaxUses {
		return tooMany
	}
	var b strings.Builder
	for i, use := range uses {
		if i > 0 {
			b.WriteByte(' ')
		}
		kind := string(use.Kind)
		if use.Required {
			kind = strings.ToUpper(kind)
		}
		b.WriteString(kind + "/" + use.Name)
		if keys := use.encodeKeys(); keys != "" {
			b.WriteString("/" + keys)
		}
	}
	if b.Len() > maxEncoded {
		return tooMany
	}
	return b.String()
}

func (u Use) encodeKeys() string {
	keys := slices.Clone(u.Keys)
	for i, key := range keys {
		if slices.Contains(u.RequiredKeys, key) {
			keys[i] += requiredMark
		}
	}
	if u.Keys == nil && len(u.RequiredKeys) > 0 {
		keys = append(keys, allKeys)
		for _, key := range u.RequiredKeys {
			keys = append(keys, key+requiredMark)
		}
	}
	return strings.Join(keys, ",")
}

// parseKeys sets the keys from what encodeKeys has written.
func (u *Use) parseKeys(text string) {
	keys := strings.Split(text, ",")
	all := keys[0] == allKeys
	if all {
		keys = keys[1:]
	}
	for _, key := range keys {
		key, required := strings.CutSuffix(key, requiredMark)
		if required {
			u.RequiredKeys = append(u.RequiredKeys, key)
		}
		if !all {
			u.Keys = append(u.Keys, key)
		}
	}
}

// Parse returns the encoded uses; false if the text was too long to keep.
func Parse(text string) (uses []Use, ok bool) {
	if text == tooMany {
		return nil, false
	}
	for part := range strings.FieldsSeq(text) {
		kind, rest, _ := strings.Cut(part, "/")
		name, keys, single := strings.Cut(rest, "/")
		if len(kind) != 1 || name == "" {
			continue
		}
		lower := strings.ToLower(kind)
		use := Use{Kind: Kind(lower[0]), Name: name, Required: lower != kind}
		if single {
			use.parseKeys(keys)
		}
		uses = append(uses, use)
	}
	return uses, true
}

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

// Kind is the kind of an object whose content pods can use: ConfigMap or Secret.
type Kind byte

// Kinds of objects, with the letters that [Encode] uses for them.
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

// Use describes how a pod template uses a ConfigMap or Secret in the same namespace.
type Use struct {
	Kind Kind
	Name string
	// Keys lists the used keys, sorted. It is nil if all keys are used.
	Keys []string
	// Required is set if pods do not start without the object. RequiredKeys lists the keys without
	// which pods do not start, sorted.
	Required     bool
	RequiredKeys []string
}

// MaxUses is the maximum number of ConfigMaps and Secrets that a pod template may use. maxEncoded
// is the maximum length, in bytes, of a string returned by [Encode]; the cache keeps such a string
// for each workload.
const (
	MaxUses    = 100
	maxEncoded = 16 << 10
)

// Markers in strings returned by [Encode]. tooMany replaces the entire string if a template exceeds
// the limits. requiredMark follows a key without which pods do not start. allKeys precedes the
// required keys of an object of which all keys are used.
const (
	tooMany      = "!"
	requiredMark = "!"
	allKeys      = "*"
)

// possible matches all valid object names and keys, and some invalid strings.
var possible = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)

type object struct {
	kind Kind
	name string
}

// used describes how a pod template uses an object.
type used struct {
	// all is set if all keys are used; required is set if pods do not start without the object.
	all, required bool
	// keys holds the keys that are used by name. A key's value is true if pods do not start without
	// the key.
	keys map[string]bool
}

// collector describes, for each ConfigMap and Secret that a pod template uses, how it is used.
type collector map[object]*used

// of returns the entry of an object, to which the caller adds the used keys. It creates the entry
// if there is none. `optional` is the field of the reference to the object; nil means false.
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

// Uses returns the ConfigMaps and Secrets that a pod template uses as environment variables or
// files, sorted by kind and name. If any reference uses an object as a whole, all keys of the
// object count as used. Optional objects are included even if they are missing. Invalid names are
// left out.
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

// Encode returns the uses of a pod template as a compact string, in which the uses are separated by
// spaces. "c/name" stands for a ConfigMap of which all keys are used, and "s/name/key,key" for the
// named keys of a Secret. The letter of the kind is in upper case if pods do not start without the
// object, and a key is followed by "!" if pods do not start without the key. If all keys are used
// and some are required, "*" precedes the required keys, as in "S/name/*,key!". Encode returns "!"
// if the string would be too long for the cache.
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

// parseKeys sets Keys and RequiredKeys from the output of the method encodeKeys.
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

// Parse parses the output of [Encode]. ok is false if the template had too many uses to encode.
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

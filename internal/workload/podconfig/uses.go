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
)

// Kind is a kind of object with content for pods.
type Kind byte

// The kinds.
const (
	ConfigMap Kind = 'c'
	Secret    Kind = 's'
)

// Use is the use of a ConfigMap or Secret by a pod template in the same namespace.
type Use struct {
	Kind Kind
	Name string
	// Keys are the used keys, sorted; nil means all keys.
	Keys []string
}

// MaxUses is the maximum number of ConfigMaps and Secrets that a template may use, and
// maxEncoded the maximum length of the text of [Encode] in bytes, which is kept for each
// workload.
const (
	MaxUses    = 100
	maxEncoded = 16 << 10
)

// tooMany is the text for a template beyond these limits.
const tooMany = "!"

// possible matches all names and keys that objects can have, and some others.
var possible = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)

type object struct {
	kind Kind
	name string
}

// collector has the used keys of each object; nil means all keys.
type collector map[object]map[string]bool

func (c collector) all(kind Kind, name string) {
	if possible.MatchString(name) {
		c[object{kind, name}] = nil
	}
}

func (c collector) key(kind Kind, name, key string) {
	if !possible.MatchString(name) || !possible.MatchString(key) {
		return
	}
	o := object{kind, name}
	keys, used := c[o]
	switch {
	case !used:
		c[o] = map[string]bool{key: true}
	case keys != nil:
		keys[key] = true
	}
}

func (c collector) items(kind Kind, name string, items []corev1.KeyToPath) {
	if len(items) == 0 {
		c.all(kind, name)
	}
	for _, item := range items {
		c.key(kind, name, item.Key)
	}
}

func (c collector) containers(containers []corev1.Container) {
	for i := range containers {
		for _, from := range containers[i].EnvFrom {
			if ref := from.ConfigMapRef; ref != nil {
				c.all(ConfigMap, ref.Name)
			}
			if ref := from.SecretRef; ref != nil {
				c.all(Secret, ref.Name)
			}
		}
		for _, env := range containers[i].Env {
			if env.ValueFrom == nil {
				continue
			}
			if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
				c.key(ConfigMap, ref.Name, ref.Key)
			}
			if ref := env.ValueFrom.SecretKeyRef; ref != nil {
				c.key(Secret, ref.Name, ref.Key)
			}
		}
	}
}

func (c collector) volumes(volumes []corev1.Volume) {
	for i := range volumes {
		if v := volumes[i].ConfigMap; v != nil {
			c.items(ConfigMap, v.Name, v.Items)
		}
		if v := volumes[i].Secret; v != nil {
			c.items(Secret, v.SecretName, v.Items)
		}
		if volumes[i].Projected == nil {
			continue
		}
		for _, source := range volumes[i].Projected.Sources {
			if v := source.ConfigMap; v != nil {
				c.items(ConfigMap, v.Name, v.Items)
			}
			if v := source.Secret; v != nil {
				c.items(Secret, v.Name, v.Items)
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
	for o, keys := range c {
		use := Use{Kind: o.kind, Name: o.name}
		if keys != nil {
			use.Keys = slices.Sorted(maps.Keys(keys))
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
// text would be too long to keep.
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
		b.WriteByte(byte(use.Kind))
		b.WriteString("/" + use.Name)
		if use.Keys != nil {
			b.WriteString("/" + strings.Join(use.Keys, ","))
		}
	}
	if b.Len() > maxEncoded {
		return tooMany
	}
	return b.String()
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
		use := Use{Kind: Kind(kind[0]), Name: name}
		if single {
			use.Keys = strings.Split(keys, ",")
		}
		uses = append(uses, use)
	}
	return uses, true
}

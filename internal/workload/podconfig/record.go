// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podconfig

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ID identifies a ConfigMap or Secret.
type ID struct {
	Kind            Kind
	Namespace, Name string
}

// Record replaces a ConfigMap or Secret in the cache. It holds only a hash of each value.
type Record struct {
	ID
	// modified is the time of the latest change to any field according to managedFields, in Unix
	// seconds. It is 0 if unknown.
	modified int64
	version  uint64
	// writer is the field manager that last wrote the object's content. before is the previous
	// writer, if this process has observed it. Both are "" if unknown.
	writer, before string
	// sums is a sequence of entries, each of which consists of the length of a key, the key, and
	// the hash of the key's value. If whole is set, because the object has too many keys, sums is a
	// single hash of all entries.
	sums  string
	whole bool
	// opaque is set for Secrets of Helm releases, whose keys are not recorded.
	opaque bool
}

// maxSums is the maximum length of Record.sums, in bytes. A limit is needed because an object can
// have a hundred thousand keys of a few bytes, each of which would take up more memory in the
// record than in the object. Above the limit, all keys count as used.
const maxSums = 24 << 10

// sumSize is the length to which hashes of values are truncated, in bytes.
const sumSize = 16

// releaseType is the type of the Secrets in which Helm stores releases. The content of these
// Secrets is not hashed, because they are many and large, and no pod uses them.
const releaseType = "helm.sh/release.v1"

// RecordOf returns the record of a ConfigMap or Secret. If `in` is a Record, it is returned
// unchanged. Any other object causes an error.
func RecordOf(in any) (*Record, error) {
	switch o := in.(type) {
	case *Record:
		return o, nil
	case *corev1.ConfigMap:
		values := make(map[string][]byte, len(o.Data)+len(o.BinaryData))
		for key, value := range o.Data {
			values[key] = []byte(value)
		}
		maps.Copy(values, o.BinaryData)
		return newRecord(ConfigMap, &o.ObjectMeta, values, func(value []byte) []byte {
			sum := sha256.Sum256(value)
			return sum[:]
		}), nil
	case *corev1.Secret:
		values := o.Data
		if o.Type == releaseType {
			values = nil
		}
		// The hashes of Secret values are keyed with the UID, which is random and known only to
		// clients that may read the Secret. Other clients therefore cannot find a value by hashing
		// guesses.
		r := newRecord(Secret, &o.ObjectMeta, values, func(value []byte) []byte {
			mac := hmac.New(sha256.New, []byte(o.UID))
			mac.Write(value)
			return mac.Sum(nil)
		})
		r.opaque = o.Type == releaseType
		return r, nil
	default:
		return nil, fmt.Errorf("%T in the cache of ConfigMaps and Secrets", in)
	}
}

func newRecord(kind Kind, meta *metav1.ObjectMeta, values map[string][]byte, hash func([]byte) []byte) *Record {
	r := &Record{
		// The strings are copied so that the original object can be garbage-collected.
		ID:      ID{kind, unique.Make(meta.Namespace).Value(), strings.Clone(meta.Name)},
		version: versionOf(meta.ResourceVersion),
	}
	written := int64(-1)
	for i := range meta.ManagedFields {
		fields := &meta.ManagedFields[i]
		if fields.Time == nil || fields.Subresource != "" {
			continue
		}
		at := fields.Time.Unix()
		r.modified = max(r.modified, at)
		if at >= written && ownsContent(fields.FieldsV1) {
			r.writer, written = unique.Make(strings.ToValidUTF8(fields.Manager, "?")).Value(), at
		}
	}
	var sums []byte
	for _, key := range slices.Sorted(maps.Keys(values)) {
		sums = binary.AppendUvarint(sums, uint64(len(key)))
		sums = append(sums, key...)
		sums = append(sums, hash(values[key])[:sumSize]...)
	}
	if r.whole = len(sums) > maxSums; r.whole {
		sum := sha256.Sum256(sums)
		sums = sum[:sumSize]
	}
	r.sums = string(sums)
	return r
}

// ownsContent reports whether `fields` contains data or binaryData, which means that its field
// manager has written content.
func ownsContent(fields *metav1.FieldsV1) bool {
	if fields == nil {
		return false
	}
	all := map[string]json.RawMessage{}
	if json.Unmarshal(fields.GetRawBytes(), &all) != nil {
		return false
	}
	return all["f:data"] != nil || all["f:binaryData"] != nil
}

// versionOf converts a resourceVersion to a number, which takes up less memory. A resourceVersion
// that is not a number is hashed, which is sufficient because the result only has to differ between
// versions.
func versionOf(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		h := fnv.New64a()
		h.Write([]byte(text))
		return h.Sum64()
	}
	return version
}

// Modified returns the time of the latest change to any field, or zero if it is unknown.
func (r *Record) Modified() time.Time {
	if r.modified == 0 {
		return time.Time{}
	}
	return time.Unix(r.modified, 0).UTC()
}

// Follow copies information from the object's previous record that cannot be derived from the
// object itself. If the content is the same, it keeps the earlier modification time. If the content
// differs but the modification time is not later, the time is set to unknown, because an edit that
// only removes keys does not update the time in managedFields.
func (r *Record) Follow(earlier *Record) {
	if r.SameContent(earlier) {
		r.modified, r.writer, r.before = earlier.modified, earlier.writer, earlier.before
		return
	}
	if r.modified <= earlier.modified {
		r.modified = 0
	}
	r.before = earlier.writer
	if r.before == r.writer {
		r.before = earlier.before
	}
}

// Writers returns the last two field managers that wrote content, as far as they are known, sorted
// by name. A manager that wrote both times is returned once.
func (r *Record) Writers() []string {
	writers := slices.DeleteFunc([]string{r.writer, r.before}, func(w string) bool { return w == "" })
	slices.Sort(writers)
	return slices.Compact(writers)
}

// GetObjectMeta returns the metadata that an informer requires of an object in its cache.
func (r *Record) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name, ResourceVersion: strconv.FormatUint(r.version, 10)}
}

// SameContent reports whether the objects of two records have the same content.
func (r *Record) SameContent(other *Record) bool { return r.sums == other.sums }

// has reports whether the object contains the given key.
func (r *Record) has(key string) (found bool) {
	r.each(func(k, _ string) bool {
		found = k == key
		return !found
	})
	return found
}

// each calls `do` with each key and the hash of its value, until do returns false.
func (r *Record) each(do func(key, sum string) bool) {
	for rest := r.sums; rest != ""; {
		length, size := binary.Uvarint([]byte(rest[:min(len(rest), binary.MaxVarintLen64)]))
		end := size + int(length)
		if !do(rest[size:end], rest[end:end+sumSize]) {
			return
		}
		rest = rest[end+sumSize:]
	}
}

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

// Record replaces a ConfigMap or Secret in the cache: it has a hash of the value of each key.
type Record struct {
	ID
	// modified is the time of the last change of any field in managedFields, in seconds since
	// 1970; 0 if unknown.
	modified int64
	version  uint64
	// writer is the field manager that wrote content last, and before the field manager that
	// did so before, as far as this process has seen; "" if unknown.
	writer, before string
	// sums is a sequence of entries: the length of a key, the key, and the hash of its value. For an
	// object with many keys it is a single hash of all entries, and whole is set.
	sums  string
	whole bool
	// opaque is set for a Secret of a Helm release, whose keys are not recorded.
	opaque bool
}

// maxSums bounds the length of sums: an object may have a hundred thousand keys of a few bytes, each of
// which would take more in memory than in the object. Above the bound, all keys count as used.
const maxSums = 24 << 10

// sumSize is the number of bytes that are kept of the hash of a value.
const sumSize = 16

// releaseType is the type of the Secrets in which Helm stores releases. Their content is not
// hashed: they are many and large, and no pod uses them.
const releaseType = "helm.sh/release.v1"

// RecordOf returns the record of a ConfigMap or Secret; a record is returned unchanged. Any
// other object is an error.
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
		// The UID is random, and known only to clients that may read the Secret: it keeps
		// others from finding a value by hashing guesses.
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
		// The copies let the memory of the whole object be freed.
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

// ownsContent reports whether a field manager with these fields has written content.
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

// versionOf returns a resourceVersion as a number, which takes less memory. A resourceVersion
// that is not a number is hashed: it only needs to differ for different versions.
func versionOf(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		h := fnv.New64a()
		h.Write([]byte(text))
		return h.Sum64()
	}
	return version
}

// Modified returns the time of the last change of any field; zero if unknown.
func (r *Record) Modified() time.Time {
	if r.modified == 0 {
		return time.Time{}
	}
	return time.Unix(r.modified, 0).UTC()
}

// Follow takes over data from the previous record that the object itself does not contain. A
// record with the same content keeps the earlier time of modification. That of a record with other content is
// unknown if it is not a later one: managedFields have no time of an edit that only removes keys.
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

// Writers returns the field managers that have written content last, at most two, sorted by
// name.
func (r *Record) Writers() []string {
	writers := slices.DeleteFunc([]string{r.writer, r.before}, func(w string) bool { return w == "" })
	slices.Sort(writers)
	return slices.Compact(writers)
}

// GetObjectMeta returns the metadata that an informer needs of a stored object.
func (r *Record) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name, ResourceVersion: strconv.FormatUint(r.version, 10)}
}

// SameContent reports whether two records have the same content.
func (r *Record) SameContent(other *Record) bool { return r.sums == other.sums }

// has reports whether the object has a key.
func (r *Record) has(key string) (found bool) {
	r.each(func(k, _ string) bool {
		found = k == key
		return !found
	})
	return found
}

// each calls do with each key and the hash of its value, until do returns false.
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

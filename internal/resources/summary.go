// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// significantDigits is the number of digits of a number in a summary, unless its integer part
// has more.
const significantDigits = 3

// binaryUnits are the suffixes of amounts of bytes, each 1,024 times the previous.
var binaryUnits = []string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}

// Summary returns the utilization of a resource as text: requested, allocatable and percent, as
// in "1.5/8 (18%)" cores or "0.586/5.85Gi (10%)". Both numbers are in the unit that suits
// allocatable. If nothing is allocatable, and so there is no percentage, it returns "".
func Summary(name corev1.ResourceName, requested, allocatable corev1.ResourceList, percent map[corev1.ResourceName]int32) string {
	p, known := percent[name]
	if !known {
		return ""
	}
	of := number(allocatable[name])
	divisor, suffix := unitOf(name, of)
	return fmt.Sprintf("%s/%s%s (%d%%)", short(number(requested[name])/divisor), short(of/divisor), suffix, p)
}

// Human returns an amount of a resource in a short form: "98Ti", "1.5".
func Human(name corev1.ResourceName, amount resource.Quantity) string {
	x := number(amount)
	divisor, suffix := unitOf(name, x)
	return short(x/divisor) + suffix
}

// unitOf returns the unit that suits an amount of a resource.
func unitOf(name corev1.ResourceName, amount float64) (divisor float64, suffix string) {
	divisor = 1
	if !inBytes(name) {
		return divisor, ""
	}
	for _, unit := range binaryUnits {
		suffix = unit
		if amount/divisor < 1024 {
			break
		}
		divisor *= 1024
	}
	return divisor, suffix
}

// number returns a quantity as an approximate number, for display only.
func number(q resource.Quantity) float64 { return q.AsApproximateFloat64() }

// short formats a non-negative number with [significantDigits] digits.
func short(x float64) string {
	decimals := significantDigits
	if x >= 1 {
		decimals = max(0, significantDigits-1-int(math.Log10(x)))
	}
	if x > 0 && x < 0.001 {
		return "<0.001"
	}
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

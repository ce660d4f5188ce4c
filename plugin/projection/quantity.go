package projection

import (
	"math/big"
	"strconv"
	"strings"
)

// maxExponent bounds what a quantity makes us compute, and its digits.
const maxExponent = 100

// quantity returns the value of a Kubernetes quantity as a plain decimal
// number, so that 1024Mi is 1Gi and 1000m is 1: the API server stores one of
// the spellings, whichever was sent. As there (k8s.io/apimachinery
// pkg/api/resource, ParseQuantity), what is finer than a nano is rounded away
// from zero. What is no quantity stays as written; the API server refuses it.
func quantity(s string) string {
	digits := strings.TrimLeft(s, "+-")
	n := strings.IndexFunc(digits, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if n < 0 {
		n = len(digits)
	}
	scale, ok := quantityScale(digits[n:])
	value, isNumber := new(big.Rat).SetString(digits[:n])
	if !ok || !isNumber || len(s)-len(digits) > 1 || n > maxExponent {
		return s
	}
	value.Mul(value, scale)
	nano := new(big.Rat).Mul(value, big.NewRat(1e9, 1))
	whole, rest := new(big.Int).QuoRem(nano.Num(), nano.Denom(), new(big.Int))
	if rest.Sign() != 0 {
		whole.Add(whole, big.NewInt(1))
	}
	out := new(big.Rat).SetFrac(whole, big.NewInt(1e9)).FloatString(9)
	out = strings.TrimRight(strings.TrimRight(out, "0"), ".")
	if strings.HasPrefix(s, "-") && out != "0" {
		out = "-" + out
	}
	return out
}

// quantityScale is what the suffix of a quantity multiplies by.
func quantityScale(suffix string) (*big.Rat, bool) {
	if i := strings.Index("numkMGTPE", suffix); len(suffix) == 1 && i >= 0 {
		return power(10, [...]int{-9, -6, -3, 3, 6, 9, 12, 15, 18}[i]), true
	}
	if i := strings.Index("KMGTPE", strings.TrimSuffix(suffix, "i")); len(suffix) == 2 && suffix[1] == 'i' && i >= 0 {
		return power(2, 10*(i+1)), true
	}
	if suffix == "" {
		return power(10, 0), true
	}
	if suffix[0] != 'e' && suffix[0] != 'E' {
		return nil, false
	}
	exponent, err := strconv.Atoi(suffix[1:])
	if err != nil || exponent > maxExponent || exponent < -maxExponent {
		return nil, false
	}
	return power(10, exponent), true
}

func power(base int64, exponent int) *big.Rat {
	abs := max(exponent, -exponent)
	p := new(big.Int).Exp(big.NewInt(base), big.NewInt(int64(abs)), nil)
	if exponent < 0 {
		return new(big.Rat).SetFrac(big.NewInt(1), p)
	}
	return new(big.Rat).SetInt(p)
}

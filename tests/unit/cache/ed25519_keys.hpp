// Keys that were generated for these tests and are used nowhere else.
#pragma once

#include <string_view>

namespace tilewright::cache {

inline constexpr std::string_view kPrivateKeyA = R"(-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIH9mS7qrBYfVFuONsgzujcONhmNkl9dsc0uM/pOzyX0L
-----END PRIVATE KEY-----
)";
inline constexpr std::string_view kPublicKeyA = R"(-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEA4Mg1QTUwj/rqaTB9i7qRqLUqxJ9h57zBd41iq9bIUHE=
-----END PUBLIC KEY-----
)";
inline constexpr std::string_view kPublicKeyB = R"(-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAQSjQw3WBqCCE1+/yXfwWchomwdFfjlb7Bb+9kFUkff4=
-----END PUBLIC KEY-----
)";
inline constexpr std::string_view kPublicKeyOfRsa = R"(-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC/SPsEk4w9rqLe7Ky5jfmXQdPT
4mBtxa16MdKBTvpSKKXSVEGXeFbEYeoqkVhfDBkscU4f15cGO7F1bYgTa9NXz7lE
ekDNvzs+LuSOgwBkH62Ez5ZAC4TT+jJVnApcQ6cfx0CrTH3YN2vVS+WLvrWmvnGu
modklsJt5rFYHu709wIDAQAB
-----END PUBLIC KEY-----
)";

}  // namespace tilewright::cache

// Refuses scalars that are given for an epilogue that does not use them.
#pragma once

#include <map>
#include <string>

#include "tilewright/op/epilogue.hpp"

namespace tilewright::cli {

/// @throws InvalidArgument naming the scalar, as the user gave it, if the epilogue does not use it
void check_uses_scalar(const op::Epilogue& epilogue, const std::string& name, const std::string& given_as);

/// For the options of a command: --alpha and --beta that are not the defaults, and --epilogue-scalar.
void check_uses_scalars(const op::Epilogue& epilogue, double alpha, double beta,
                        const std::map<std::string, double>& scalars);

}  // namespace tilewright::cli

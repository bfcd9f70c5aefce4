# One test binary per room (libtorch makes linking dear), one ctest entry per binary. The binary leaves
# its cases in ${CMAKE_BINARY_DIR}/reports/NAME.xml, where tools/test_summary.py counts them.

find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)

# elliptical_test(NAME source... [LABELS label...] [LIBS target...] [TORCH] [SLOW] [ALONE source...])
#   LABELS  ctest labels: unit, grad, parity, flow. Default: unit.
#   TORCH   sources may include torch/torch.h, precompiled.
#   ALONE   sources that keep out of batches (elliptical_unity), for instance because they include Highway.
#   SLOW    test cases with "Slow" in their names become an entry NAME_slow with the label slow.
function(elliptical_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TORCH;SLOW" "" "LABELS;LIBS;ALONE")
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS} ${arg_ALONE})
  elliptical_target(${name})
  target_link_libraries(${name} PRIVATE ${arg_LIBS} GTest::gtest_main rapidcheck)
  if(arg_TORCH)
    elliptical_torch_headers(${name})
  endif()
  elliptical_unity(${name} ALONE ${arg_ALONE})

  set(reports ${CMAKE_BINARY_DIR}/reports)
  add_test(NAME ${name}
           COMMAND ${name} --gtest_filter=-*Slow* --gtest_output=xml:${reports}/${name}.xml)
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}")
  if(arg_SLOW)
    add_test(NAME ${name}_slow
             COMMAND ${name} --gtest_filter=*Slow* --gtest_output=xml:${reports}/${name}_slow.xml)
    set_tests_properties(${name}_slow PROPERTIES LABELS slow)
  endif()
endfunction()
